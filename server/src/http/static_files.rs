//! `/assets/{name}`: serves the pages' styles and scripts.

use bytes::Bytes;

use super::{
    assets::{CSS, find},
    reply::{self, ApiError, Outcome},
    request::Request,
    theme,
};

pub(super) async fn serve(request: Request) -> Outcome {
    let (kind, content) = match find(request.id()) {
        Some(asset) => (asset.kind, Bytes::from_static(asset.content.as_bytes())),
        None => (CSS, theme::named(request.id()).ok_or_else(ApiError::no_such_path)?.into()),
    };
    Ok(reply::file(kind, "public, max-age=31536000, immutable", None, content))
}
