//! Encrypted connections, against a server with a certificate of an authority that nobody else knows.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_core::ThreadId;

use crate::support::{Server, acme, connect, count, message, open_postgres};

/// PostgreSQL brings the program along: its package needs certificates itself.
fn openssl(folder: &Path, arguments: &str) {
    let mut command = Command::new("openssl");
    let output =
        command.current_dir(folder).args(arguments.split(' ')).output().expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes an authority and a certificate for this machine; returns the authority's.
fn certify(server: &Server, folder: &Path) -> PathBuf {
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    openssl(folder, &format!("{new} -subj /CN=tests -keyout ca.key -out ca.pem"));
    openssl(
        folder,
        &format!(
            "{new} -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
             -addext basicConstraints=critical,CA:FALSE -CA ca.pem -CAkey ca.key -keyout server.key -out server.crt"
        ),
    );
    let data = server.data();
    let owner = fs::metadata(&data).unwrap();
    for name in ["server.key", "server.crt"] {
        let file = data.join(name);
        fs::copy(folder.join(name), &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let config = data.join("postgresql.auto.conf");
    fs::write(config, "ssl = on\n").unwrap();
    server.restart("fast");
    folder.join("ca.pem")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_checked_when_that_is_asked_for() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let authority = certify(&server, folder.path());
    let admin = connect(&server.url).await;
    let encrypted = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
        WHERE a.application_name = 'baton' AND s.ssl";

    for (parameters, is_encrypted) in [
        (String::new(), true),
        ("?sslmode=disable".to_owned(), false),
        (format!("?sslmode=require&sslrootcert={}", authority.display()), true),
        (format!("?sslmode=verify-full&sslrootcert={}", authority.display()), true),
    ] {
        let store = open_postgres(&format!("{}{parameters}", server.url)).await.unwrap();
        acme(&store).accept(message(ThreadId::random(), "hello")).await.unwrap();
        assert_eq!(count(&admin, encrypted).await > 0, is_encrypted, "{parameters}");
        drop(store);
        let connected = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'baton'";
        while count(&admin, connected).await > 0 {
            tokio::task::yield_now().await;
        }
    }

    let error = open_postgres(&format!("{}?sslmode=require", server.url)).await.unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("certificate"), "{error}");
}
