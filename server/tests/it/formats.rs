//! A store of another format is refused.

use std::{fs, process::Command};

use crate::{
    check::{change, filled},
    server::{server_binary, text_of},
};

#[tokio::test]
async fn a_store_of_another_format_and_its_backup_are_refused_with_advice() {
    for format in ["2", "9"] {
        let server = filled().await;
        let [backup, restored] = ["backup", "restored"].map(|name| server.directory.path().join(name));
        server.run(&["backup", backup.to_str().unwrap()]);
        let manifest = backup.join("backup.json");
        let text = fs::read_to_string(&manifest).unwrap();
        let other = text.replace("\"format\": 1,", &format!("\"format\": {format},"));
        assert_ne!(text, other);
        fs::write(&manifest, other).unwrap();
        change(&server.data(), move |view| view.put(journaled_tree::FORMAT, format));
        let refusal = format!("format {format} is newer than format 1 of this version; use the version that wrote it");
        let restore = Command::new(server_binary())
            .arg("restore")
            .arg(&backup)
            .arg("--data-dir")
            .arg(&restored)
            .output()
            .unwrap();
        for refused in [server.try_run(&["serve"]), server.try_run(&["check"]), restore] {
            assert!(refused.status.code() == Some(1) && text_of(&refused).contains(&refusal), "{}", text_of(&refused));
        }
        assert!(!restored.exists());
    }
}
