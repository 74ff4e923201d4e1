//! Outputs whose names nobody typed: objects beside profiles, images, copies in the cache, pages, parts of data sets.

use super::*;

/// The profile of MoarVM with raw code of root's alone, and a map of root's.
fn moar(scene: &Scene) {
    let map = format!("{AT:x} {:x} compiled\n", SECRET.len());
    fs::write(scene.at("st/perf-999300.map"), map).unwrap();
    fs::write(scene.at("st/callgrind.out.999300"), profile()).unwrap();
    fs::create_dir(scene.at("st/moar-jit.999300")).unwrap();
    let code = scene.at("st/moar-jit.999300/moar-jit-0001.bin");
    fs::write(&code, SECRET).unwrap();
    fs::set_permissions(&code, Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn an_object_is_no_more_readable_for_the_one_that_it_replaces() {
    let Some(scene) = Scene::new() else { return };
    moar(&scene);
    let object = || {
        let said = scene.told("callgrind callgrind.out.999300 -o ../out/named");
        let files = fs::read_dir(scene.at("out")).unwrap().map(|entry| entry.unwrap().path());
        let mut of_code = files.filter(|path| holds(&fs::read(path).unwrap(), SECRET));
        of_code.next().unwrap_or_else(|| panic!("{said}"))
    };
    let path = object();
    for (mode, expected) in [(0o600, 0o600), (0o644, 0o600), (0o666, 0o600), (0o400, 0o400)] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        assert_eq!(object(), path);
        let about = fs::metadata(&path).unwrap();
        assert_ne!(about.ino(), inode, "it was replaced");
        assert_eq!(about.mode() & 0o777, expected, "instead of one of {mode:o}");
    }
}

/// perf would write there.
#[test]
fn no_recording_goes_where_a_stranger_s_link_leads() {
    let Some(scene) = Scene::new() else { return };
    let before = everything(&scene);
    scene.link(scene.at("victim"), "linked");
    scene.link(scene.at("victim/new.data"), "perf.data");
    for output in ["linked/perf.data", "perf.data"] {
        let refused = scene.run(&format!("record -o {output} -- true"));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.contains("not followed"), "{output}: {said}");
        assert_eq!(before, everything(&scene), "{output}");
    }
}

/// A file that only root can reach, whatever its own mode, must not become readable for others in what is made of it.
#[test]
fn a_file_that_others_cannot_get_to_is_not_open_to_them_in_an_object_or_an_image() {
    let Some(scene) = Scene::new() else { return };
    moar(&scene);
    let code = scene.at("st/moar-jit.999300");
    fs::set_permissions(code.join("moar-jit-0001.bin"), Permissions::from_mode(0o644)).unwrap();
    scene.victim("jit-999300.dump", &dump("compiled", Path::new("/nowhere.c")), 0o644);
    fs::write(scene.at("st/r.data"), recording(&[&scene.at("victim/jit-999300.dump")])).unwrap();
    let modes = |words: &str| {
        fs::remove_dir_all(scene.at("out")).unwrap();
        fs::create_dir(scene.at("out")).unwrap();
        let said = scene.told(words);
        let files = fs::read_dir(scene.at("out")).unwrap().map(|entry| entry.unwrap().path());
        let objects = files.filter(|path| fs::read(path).unwrap().starts_with(b"\x7fELF"));
        let modes: Vec<u32> = objects.map(|path| fs::metadata(path).unwrap().mode() & 0o777).collect();
        assert_eq!(modes.len(), 1, "{words}: {said}");
        modes[0]
    };
    let (inject, callgrind) = ("inject -i r.data -o ../out/injected", "callgrind callgrind.out.999300 -o ../out/named");
    for (mode, expected) in [(0o700, 0o600), (0o755, 0o644)] {
        fs::set_permissions(&code, Permissions::from_mode(mode)).unwrap();
        fs::set_permissions(scene.at("victim"), Permissions::from_mode(mode)).unwrap();
        assert_eq!(modes(inject), expected, "an image, behind a directory of {mode:o}");
        assert_eq!(modes(callgrind), expected, "an object, behind a directory of {mode:o}");
    }
}

/// A recording whose process has mapped a dump.
fn recorded(scene: &Scene) {
    let path = scene.stranger("jit-999300.dump", dump("compiled", Path::new("/nowhere.c")));
    fs::write(scene.at("st/r.data"), recording(&[&path])).unwrap();
}

/// The victims, and whatever was put beside them.
fn everything(scene: &Scene) -> (BTreeMap<PathBuf, String>, Vec<u8>) {
    let list = Command::new("find").arg(scene.at("victim")).args(["-printf", "%p %y %m %u %s\n"]).output().unwrap();
    (scene.victims(), list.stdout)
}

#[test]
fn images_go_through_no_link_of_a_stranger() {
    let Some(scene) = Scene::new() else { return };
    recorded(&scene);
    let image = |said: &str, directory: &str| {
        let names = fs::read_dir(scene.at(directory)).unwrap().map(|entry| entry.unwrap().file_name());
        let count = names.filter(|name| name.to_string_lossy().starts_with("jitted-")).count();
        assert_eq!(count, 1, "{directory}: {said}");
    };
    let said = scene.told("inject -i r.data -o ../out/good --image-dir ../out/images/new");
    image(&said, "out/images/new");
    let before = everything(&scene);
    scene.link(scene.at("victim"), "images");
    for directory in ["images", "images/new", "../st/images"] {
        let said = scene.told(&format!("inject -i r.data -o ../out/injected --image-dir {directory}"));
        assert!(said.contains("not followed"), "{said}");
        assert!(!scene.at("out/injected").exists());
    }
    assert_eq!(before, everything(&scene));
    // A link of root's in root's directory is gone through.
    symlink("images", scene.at("out/mine")).unwrap();
    let said = scene.told("inject -i r.data -o ../out/injected --image-dir ../out/mine/other");
    image(&said, "out/images/other");
}

#[test]
fn the_cache_of_a_stranger_leads_nowhere() {
    let Some(scene) = Scene::new() else { return };
    recorded(&scene);
    let first = |path: &Path| path.components().nth(1).unwrap().as_os_str().to_owned();
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(["inject", "-i", "r.data", "-o", "../out/injected", "--cache"]).stdin(Stdio::null());
        let output = command.current_dir(scene.at("st")).env("HOME", scene.at("st")).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let before = everything(&scene);
    let below = format!(".debug/{}", first(scene.0.path()).to_str().unwrap());
    for link in [below.as_str(), ".debug/.build-id", ".debug"] {
        let _ = fs::remove_dir_all(scene.at("st/.debug"));
        scene.link(scene.at("victim"), link);
        let said = run();
        assert!(said.contains("not followed"), "{link}: {said}");
        assert_eq!(before, everything(&scene), "{link}");
        assert!(scene.at("out/injected").exists(), "the recording is made without the cache: {said}");
        fs::remove_file(scene.at("st/.debug")).unwrap_or_else(|_| fs::remove_dir_all(scene.at("st/.debug")).unwrap());
    }
    run();
    let found = Command::new("find").arg(scene.at("st/.debug")).args(["-name", "elf"]).output().unwrap().stdout;
    assert_eq!(found.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn pages_and_parts_of_data_sets_go_through_no_link_of_a_stranger() {
    let Some(scene) = Scene::new() else { return };
    let before = everything(&scene);
    scene.link(scene.at("victim/secret"), "pages/jitgraft.1");
    fs::set_permissions(scene.at("st/pages"), Permissions::from_mode(0o1777)).unwrap();
    scene.told("man pages");
    assert!(fs::read_to_string(scene.at("st/pages/jitgraft.1")).unwrap().contains("jitgraft"));
    assert!(!fs::symlink_metadata(scene.at("st/pages/jitgraft.1")).unwrap().is_symlink());
    assert_eq!(before, everything(&scene));
    #[cfg(feature = "tables")]
    {
        recorded(&scene);
        scene.link(scene.at("victim"), "set/samples");
        let said = scene.told("export r.data --to parquet --partition -o set");
        assert!(said.contains("not followed"), "{said}");
        assert_eq!(before, everything(&scene));
    }
}
