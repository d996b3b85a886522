//! Prompts.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_serve::declare::{
    Completing, Content, Contents, Context, Elicited, Failure, Message, Prompt,
};

use crate::content::PNG;

pub(crate) fn all() -> Vec<Prompt> {
    vec![
        Prompt::new("test_simple_prompt", async || "This is a simple prompt for testing.")
            .description("A message"),
        Prompt::new("test_prompt_with_arguments", async |Two { arg1, arg2 }: Two| {
            format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
        })
        .description("A message with two arguments")
        .complete("arg1", cities),
        Prompt::new("test_prompt_with_embedded_resource", embedded)
            .description("A resource and a message"),
        Prompt::new("test_prompt_with_image", async || {
            vec![
                Message::user(Content::image(PNG, "image/png")),
                Message::user("Please analyze the image above."),
            ]
        })
        .description("An image and a message"),
        Prompt::new("test_input_required_result_prompt", asking)
            .description("A message about what the person says"),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Two {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

async fn cities(asked: Completing) -> Vec<String> {
    let known = ["paris", "park", "party", "prague"];
    known.into_iter().filter(|city| city.starts_with(&asked.value)).map(str::to_owned).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    /// URI of the resource to embed
    resource_uri: String,
}

async fn embedded(Embedded { resource_uri }: Embedded) -> Vec<Message> {
    let contents = Contents::text(resource_uri, "Embedded resource content for testing.");
    vec![
        Message::user(Content::resource(contents.mime_type("text/plain"))),
        Message::user("Please process the embedded resource above."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct About {
    context: String,
}

async fn asking(context: Context) -> Result<String, Failure> {
    let question = "What context should the prompt use?";
    match context.elicit("user_context", question).await? {
        Elicited::Accepted(About { context }) => Ok(format!("Let us talk about {context}.")),
        Elicited::Declined | Elicited::Cancelled => Ok("Let us talk.".to_owned()),
    }
}
