//! Tools that ask their client.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_serve::{
    AskError,
    declare::{Context, Elicited, Failure, Sampling, Tool},
};

pub(crate) fn all() -> Vec<Tool> {
    vec![
        Tool::new("test_sampling", sampling).description("Ask the client's model"),
        Tool::new("test_missing_capability", missing).description("Ask the client's model"),
        Tool::new("test_elicitation", elicitation).description("Ask the person"),
        Tool::new("test_streaming_elicitation", name).description("Ask the person"),
        Tool::new("test_elicitation_sep1034_defaults", defaults).description("Propose answers"),
        Tool::new("test_elicitation_sep1330_enums", choices).description("Offer choices"),
        Tool::new("test_input_required_result_elicitation", name).description("Ask for a name"),
        Tool::new("test_input_required_result_sampling", capital)
            .description("Ask the client's model"),
        Tool::new("test_input_required_result_list_roots", roots).description("Ask for roots"),
        Tool::new("test_input_required_result_request_state", confirmed)
            .description("Keep a state between two rounds"),
        Tool::new("test_input_required_result_tampered_state", confirmed)
            .description("Keep a state between two rounds"),
        Tool::new("test_input_required_result_multiple_inputs", everything)
            .description("Ask for three things at once"),
        Tool::new("test_input_required_result_multi_round", rounds)
            .description("Ask in two rounds"),
        Tool::new("test_input_required_result_capabilities", possible)
            .description("Ask for what the client can answer"),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Prompted {
    /// What to ask the model
    prompt: String,
}

async fn sampling(Prompted { prompt }: Prompted, context: Context) -> Result<String, Failure> {
    let sampled = context.sample("answer", &Sampling::new(prompt, 100)).await?;
    Ok(format!("LLM response: {}", sampled.text()))
}

async fn missing(context: Context) -> Result<String, Failure> {
    sampling(Prompted { prompt: "Say something".to_owned() }, context).await
}

#[derive(Deserialize, JsonSchema)]
struct Shown {
    /// What to show the person
    message: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

async fn elicitation(Shown { message }: Shown, context: Context) -> Result<String, Failure> {
    let answer: Elicited<User> = context.elicit("user", &message).await?;
    Ok(match answer {
        Elicited::Accepted(User { username, email }) => {
            let content = json!({ "username": username, "email": email });
            format!("User response: action=accept, content={content}")
        }
        Elicited::Declined => "User response: action=decline".to_owned(),
        Elicited::Cancelled => "User response: action=cancel".to_owned(),
    })
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// The answer, where the person gave one.
fn given<T>(answer: Elicited<T>) -> Result<T, Failure> {
    match answer {
        Elicited::Accepted(value) => Ok(value),
        Elicited::Declined | Elicited::Cancelled => Err(Failure::new("there was no answer")),
    }
}

async fn name(context: Context) -> Result<String, Failure> {
    let Name { name } = given(context.elicit("user_name", "What is your name?").await?)?;
    Ok(format!("Hello, {name}!"))
}

async fn defaults(context: Context) -> Result<String, Failure> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    });
    completed(context.elicit_form("form", "Please review these values", &schema).await)
}

async fn choices(context: Context) -> Result<String, Failure> {
    let titled = |first: &str| {
        json!([
            { "const": "value1", "title": format!("First {first}") },
            { "const": "value2", "title": format!("Second {first}") },
            { "const": "value3", "title": format!("Third {first}") },
        ])
    };
    let plain = json!(["option1", "option2", "option3"]);
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": plain },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
    });
    completed(context.elicit_form("form", "Please choose", &schema).await)
}

fn completed(answer: Result<Elicited<Value>, AskError>) -> Result<String, Failure> {
    Ok(match answer? {
        Elicited::Accepted(content) => {
            format!("Elicitation completed: action=accept, content={content}")
        }
        Elicited::Declined => "Elicitation completed: action=decline".to_owned(),
        Elicited::Cancelled => "Elicitation completed: action=cancel".to_owned(),
    })
}

async fn capital(context: Context) -> Result<String, Failure> {
    let question = Sampling::new("What is the capital of France?", 100);
    Ok(context.sample("capital_question", &question).await?.text())
}

async fn roots(context: Context) -> Result<String, Failure> {
    let roots = context.roots("client_roots").await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join("\n"))
}

#[derive(Deserialize, JsonSchema)]
struct Confirmed {
    ok: bool,
}

async fn confirmed(context: Context) -> Result<String, Failure> {
    let begun = context.once("begun", async { Ok("state".to_owned()) }).await?;
    let Confirmed { ok } = given(context.elicit("confirm", "Please confirm").await?)?;
    Ok(format!("{begun}-{}", if ok { "ok" } else { "refused" }))
}

async fn everything(context: Context) -> Result<String, Failure> {
    let greeting = Sampling::new("Generate a greeting", 50);
    let (name, greeting, roots) = tokio::join!(
        context.elicit("user_name", "What is your name?"),
        context.sample("greeting", &greeting),
        context.roots("client_roots"),
    );
    let Name { name } = given(name?)?;
    Ok(format!("{name}: {} ({} roots)", greeting?.text(), roots?.len()))
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    color: String,
}

async fn rounds(context: Context) -> Result<String, Failure> {
    let Name { name } = given(context.elicit("step1", "Step 1: What is your name?").await?)?;
    let question = "Step 2: What is your favorite color?";
    let Colour { color } = given(context.elicit("step2", question).await?)?;
    Ok(format!("{name} likes {color}"))
}

async fn possible(context: Context) -> Result<String, Failure> {
    if context.client_has("/elicitation") {
        return name(context).await;
    }
    if context.client_has("/sampling") {
        return capital(context).await;
    }
    Ok("this client can be asked nothing".to_owned())
}
