//! Scripts and their source maps, which a profile's functions name.

use super::*;

const SCRIPT: &str = "function i(e){return e+1}i(1)\n";

/// The map's name for the script's only function.
const AUTHORED: &str = "namedByTheMap";

/// The script's token `i` is `AUTHORED` in the first line of `a.ts`.
fn map() -> String {
    format!(r#"{{"version":3,"sources":["a.ts"],"names":["{AUTHORED}"],"mappings":"SAASA"}}"#)
}

/// A profile with a function of this script, as V8 names it.
fn profile_of(scene: &Scene, script: &Path) {
    let column = SCRIPT.find('(').unwrap() + 1;
    fs::write(scene.at("st/in.folded"), format!("node;JS:*i {}:1:{column} 7\n", script.display())).unwrap();
}

fn is_named(scene: &Scene, command: &str) -> (bool, String) {
    let told = scene.told(&format!("{command} --source-maps auto in.folded"));
    (told.contains(&format!("JS:*{AUTHORED} ")), told)
}

#[test]
fn a_stranger_s_scripts_and_maps_are_read_if_they_are_believed() {
    let Some(scene) = Scene::new() else { return };
    let script = scene.stranger("app.js", SCRIPT);
    let map_path = scene.stranger("app.js.map", map());
    profile_of(&scene, &script);
    for (path, what) in [(&script, "the script"), (&map_path, "the map")] {
        let (named, told) = is_named(&scene, "collapse");
        assert!(!named && told.contains("belongs to user 65534"), "{what}: {told}");
        assert!(told.contains("JS:*i ") && told.contains("app.js.map was not used"), "{what}: {told}");
        assert!(is_named(&scene, "collapse -f").0, "{what} is believed");
        chown(path, Some(0), None).unwrap();
    }
    let (named, told) = is_named(&scene, "collapse");
    assert!(named, "root's own: {told}");
}

#[test]
fn no_link_of_a_stranger_leads_to_a_script_or_a_map() {
    let Some(scene) = Scene::new() else { return };
    scene.victim("app.js", SCRIPT.as_bytes(), 0o600);
    scene.victim("app.js.map", map().as_bytes(), 0o600);
    let before = scene.victims();
    let not_followed = |what: &str| {
        for command in ["collapse", "collapse -f"] {
            let (named, told) = is_named(&scene, command);
            assert!(!named && told.contains("JS:*i "), "{what}, {command}: {told}");
            assert!(told.contains("not followed") || !what.starts_with("the map"), "{what}: {told}");
        }
    };
    let own = |name: &str, text: &str| fs::write(scene.at("st").join(name), text).unwrap();
    let script = scene.at("st/app.js");
    profile_of(&scene, &script);
    scene.link(scene.at("victim/app.js"), "app.js");
    not_followed("the script is a link");
    fs::remove_file(&script).unwrap();
    own("app.js", SCRIPT);
    scene.link(scene.at("victim/app.js.map"), "app.js.map");
    not_followed("the map is a link");
    fs::remove_file(scene.at("st/app.js.map")).unwrap();
    scene.link(scene.at("victim"), "maps");
    own("app.js", &format!("{SCRIPT}//# sourceMappingURL=maps/app.js.map\n"));
    not_followed("the map's directory is a link");
    let way = scene.at("st/maps/app.js");
    profile_of(&scene, &way);
    not_followed("the script's directory is a link");
    profile_of(&scene, &scene.at("victim/app.js"));
    assert!(is_named(&scene, "collapse").0, "without a link root reads its own");
    assert_eq!(before, scene.victims());
}

#[test]
fn a_script_or_a_map_that_is_read_is_not_an_output() {
    let Some(scene) = Scene::new() else { return };
    let script = scene.at("out/app.js");
    fs::write(&script, SCRIPT).unwrap();
    fs::write(scene.at("out/app.js.map"), map()).unwrap();
    profile_of(&scene, &script);
    for (name, text) in [("app.js", SCRIPT), ("app.js.map", &map())] {
        let refused = scene.run(&format!("collapse --source-maps auto in.folded -o ../out/{name}"));
        assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
        assert_eq!(fs::read_to_string(scene.at("out").join(name)).unwrap(), text);
    }
}
