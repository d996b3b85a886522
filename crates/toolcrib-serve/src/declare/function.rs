//! Turns functions of several shapes into one: arguments in JSON and a [`Context`] in, a value out.

use std::{pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolcrib_core::raw::Raw;

use super::{
    context::Context,
    schema::{self, Derived},
};

/// A function whose arguments could not be read gives the reason instead of its value.
pub(crate) type Called<R> = Pin<Box<dyn Future<Output = Result<R, String>> + Send>>;

/// A function, whatever its parameters were.
pub(crate) type Erased<R> = Arc<dyn Fn(Raw, Context) -> Called<R> + Send + Sync>;

/// Functions that can be declared: of a typed argument, a [`Context`], both in this order, or
/// neither. `Shape` only tells them apart.
///
/// A closure that holds something of its own clones it for each call:
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
/// use toolcrib_serve::declare::Tool;
///
/// let count = Arc::new(AtomicU32::new(0));
/// let tool = Tool::new("count", move || {
///     let count = Arc::clone(&count);
///     async move { format!("called {} times", count.fetch_add(1, Ordering::Relaxed) + 1) }
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "this cannot be declared as a function of a server",
    label = "not a function that can be declared",
    note = "it must be async (or give back a future) and take nothing, (argument), (Context) or (argument, Context), by value and in this order",
    note = "the type of the argument derives serde::Deserialize and schemars::JsonSchema",
    note = "its future is Send, and a closure with state clones it: `move |a: A| {{ let state = state.clone(); async move {{ … }} }}`"
)]
pub trait Function<Shape>: Send + Sync + 'static {
    /// What it gives back.
    type Output: Send + 'static;

    /// The schema of its argument, and its one form of calling.
    #[doc(hidden)]
    fn erase(self) -> Erasing<Self::Output>;
}

/// A function ready to be declared.
#[doc(hidden)]
pub struct Erasing<R> {
    pub(crate) derived: Derived,
    pub(crate) call: Erased<R>,
}

/// Shape of a function without parameters.
#[derive(Debug)]
pub struct Bare;
/// Shape of a function of a [`Context`].
#[derive(Debug)]
pub struct WithContext;
/// Shape of a function of an argument.
#[derive(Debug)]
pub struct WithArgument<A>(std::marker::PhantomData<A>);
/// Shape of a function of an argument and a [`Context`].
#[derive(Debug)]
pub struct WithBoth<A>(std::marker::PhantomData<A>);

impl<F, Fut> Function<Bare> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = Fut::Output;

    fn erase(self) -> Erasing<Fut::Output> {
        let call: Erased<_> = Arc::new(move |_, _| running(self()));
        Erasing { derived: schema::of_nothing(), call }
    }
}

impl<F, Fut> Function<WithContext> for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = Fut::Output;

    fn erase(self) -> Erasing<Fut::Output> {
        let call: Erased<_> = Arc::new(move |_, context| running(self(context)));
        Erasing { derived: schema::of_nothing(), call }
    }
}

impl<F, A, Fut> Function<WithArgument<A>> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + 'static,
    Fut: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = Fut::Output;

    fn erase(self) -> Erasing<Fut::Output> {
        let call: Erased<_> = Arc::new(move |argument, _| match read(&argument) {
            Ok(argument) => running(self(argument)),
            Err(why) => refused(why),
        });
        Erasing { derived: schema::of::<A>(), call }
    }
}

impl<F, A, Fut> Function<WithBoth<A>> for F
where
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + 'static,
    Fut: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = Fut::Output;

    fn erase(self) -> Erasing<Fut::Output> {
        let call: Erased<_> = Arc::new(move |argument, context| match read(&argument) {
            Ok(argument) => running(self(argument, context)),
            Err(why) => refused(why),
        });
        Erasing { derived: schema::of::<A>(), call }
    }
}

fn running<R: Send + 'static>(future: impl Future<Output = R> + Send + 'static) -> Called<R> {
    Box::pin(async { Ok(future.await) })
}

fn refused<R: Send + 'static>(why: String) -> Called<R> {
    Box::pin(std::future::ready(Err(why)))
}

/// Reads an argument that fits its schema. To JSON Schema `2.0` is an integer and to serde it is
/// none, so what cannot be read as it stands is read once more with such numbers written as
/// integers.
fn read<A: DeserializeOwned>(argument: &Raw) -> Result<A, String> {
    let error = match argument.read() {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    argument
        .read::<Value>()
        .ok()
        .map(whole)
        .and_then(|value| serde_json::from_value(value).ok())
        .ok_or_else(|| {
            // The position inside a message the model never saw as text says nothing to it.
            let words = error.to_string();
            words.split(" at line ").next().unwrap_or_default().to_owned()
        })
}

/// The same value with every whole number written as an integer.
fn whole(value: Value) -> Value {
    /// Above it a float does not say which integer is meant.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            match float.filter(|float| float.fract() == 0.0 && float.abs() <= EXACT) {
                Some(float) => Value::from(float as i64),
                None => Value::Number(number),
            }
        }
        Value::Array(list) => Value::Array(list.into_iter().map(whole).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, inner)| (key, whole(inner))).collect())
        }
        other => other,
    }
}
