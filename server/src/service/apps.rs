//! The operator's commands about developer apps.

use payments_core::{AppId, DeveloperApp, aliased::UnknownFields};

use super::{
    AdminReply, Directory, Result,
    account::NO_APP,
    operator_text::{invalid, named},
    retry_on_conflict,
};
use crate::{
    domain::{App, Brand, Colour, Edit, LogoUrl},
    store::{Change, Write},
};

impl Directory {
    pub(super) async fn create_app(
        &self,
        workspace: &str,
        name: &str,
        redirect_uris: Vec<String>,
        webhook_url: Option<String>,
        brand: Brand,
    ) -> Result<AdminReply> {
        let workspace = self.named_workspace(workspace).await?;
        let name = named("name", name)?;
        for url in redirect_uris.iter().chain(&webhook_url) {
            url::Url::parse(url).map_err(|_| invalid(format!("{url} is not an absolute URL")))?;
        }
        let now = self.ambient.now();
        let app = DeveloperApp {
            id: AppId::new(workspace.developer_id.slot(), now, self.ambient.id_bytes()),
            developer_id: workspace.developer_id,
            name: name.into(),
            description: None,
            redirect_uris,
            webhook_url,
            status: "active".into(),
            is_active: true,
            created_at: now,
            updated_at: now,
            unknown: UnknownFields::default(),
        };
        let app = App { version: 0, brand, app };
        let reply = reply(&app);
        self.commit(Change::of(Write::App(Box::new(app)))).await?;
        Ok(reply)
    }

    /// Changes how an app looks. Its open checkout pages show the change when they are loaded again.
    pub(super) async fn update_app(
        &self,
        id: &str,
        logo_url: Option<Edit<LogoUrl>>,
        colour: Option<Edit<Colour>>,
    ) -> Result<AdminReply> {
        let id: AppId = id.parse().map_err(|_| NO_APP)?;
        retry_on_conflict(|| async {
            let mut app = self.any_app(&id).await?;
            if let Some(edit) = logo_url.clone() {
                edit.apply_to(&mut app.brand.logo_url);
            }
            if let Some(edit) = colour.clone() {
                edit.apply_to(&mut app.brand.colour);
            }
            app.version += 1;
            app.app.updated_at = self.ambient.now().max(app.app.updated_at);
            let reply = reply(&app);
            self.commit(Change::of(Write::App(Box::new(app)))).await?;
            Ok(reply)
        })
        .await
    }

    async fn any_app(&self, id: &AppId) -> Result<App> {
        for workspace in self.store.workspaces().await? {
            if let Some(app) = self.store.app(&workspace.developer_id, id).await? {
                return Ok(app);
            }
        }
        Err(NO_APP)
    }
}

fn reply(app: &App) -> AdminReply {
    AdminReply::App { app_id: app.app.id.to_string(), app_name: app.app.name.clone(), brand: app.brand.clone() }
}
