//! Each step with somebody else at work right before it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::fs;

use tempfile::TempDir;

use super::*;

struct Scene {
    folder: TempDir,
    ground: Ground,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "before").unwrap();
        let ground = Ground::open(folder.path()).unwrap();
        Scene { folder, ground }
    }

    fn spot(&self, name: &str) -> Spot {
        self.ground.spot(Path::new(name), false).unwrap()
    }

    /// What lies there now, and nothing of ours beside it.
    fn left(&self) -> Vec<(String, String)> {
        let mut left: Vec<(String, String)> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                (path.file_name().unwrap().to_str().unwrap().into(), fs::read_to_string(path).unwrap())
            })
            .collect();
        left.sort();
        left
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }
}

fn read(spot: &Spot) -> Before {
    let stat = spot.look_for_file().unwrap().unwrap();
    Before::Read(stat, b"before".to_vec())
}

/// Looks, drafts, lets somebody else do `meanwhile`, and puts the draft into its place.
#[track_caller]
fn check(name: &str, look: fn(&Spot) -> Before, meanwhile: fn(&Scene), is_put: bool, left: &[(&str, &str)]) {
    let scene = Scene::new();
    let spot = scene.spot(name);
    let before = look(&spot);
    let draft = Draft::write(&spot, &before, b"ours").unwrap();
    meanwhile(&scene);
    let put = draft.put(&before, &CancellationToken::new());
    assert_eq!(put.is_ok(), is_put, "{put:?}");
    if let Err(failure) = put {
        assert!(failure.message().contains("has been modified since"), "{failure:?}");
    }
    let left: Vec<(String, String)> =
        left.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    assert_eq!(scene.left(), left);
}

fn outside(spot: &Spot) -> Before {
    Before::look(spot).unwrap()
}

#[test]
fn a_draft_takes_its_place_where_nobody_else_was_at_work() {
    check("a", read, |_| (), true, &[("a", "ours")]);
    check("a", outside, |_| (), true, &[("a", "ours")]);
    check("b", outside, |_| (), true, &[("a", "before"), ("b", "ours")]);
}

#[test]
fn what_somebody_else_wrote_meanwhile_stays() {
    check("a", read, |scene| scene.write("a", "theirs"), false, &[("a", "theirs")]);
    check("a", outside, |scene| scene.write("a", "theirs and longer"), false, &[("a", "theirs and longer")]);
    check("b", outside, |scene| scene.write("b", "theirs"), false, &[("a", "before"), ("b", "theirs")]);
    let replace = |scene: &Scene| {
        scene.write("c", "before");
        fs::rename(scene.folder.path().join("c"), scene.folder.path().join("a")).unwrap();
    };
    check("a", outside, replace, false, &[("a", "before")]);
    // The same bytes are the same text, whoever wrote them.
    check("a", read, replace, true, &[("a", "ours")]);
}

#[test]
fn what_somebody_else_removed_meanwhile_stays_away() {
    let remove = |scene: &Scene| fs::remove_file(scene.folder.path().join("a")).unwrap();
    check("a", read, remove, false, &[]);
    check("a", outside, remove, false, &[]);
}

#[test]
fn a_draft_that_nobody_waits_for_leaves_no_trace() {
    let scene = Scene::new();
    let spot = scene.spot("a");
    let before = read(&spot);
    let given_up = CancellationToken::new();
    given_up.cancel();
    assert!(Draft::write(&spot, &before, b"ours").unwrap().put(&before, &given_up).is_err());
    assert_eq!(scene.left(), [("a".to_owned(), "before".to_owned())]);
}

#[test]
fn what_came_out_instead_of_our_own_goes_back_in() {
    let scene = Scene::new();
    let spot = scene.spot("a");
    let draft = Draft::write(&spot, &read(&spot), b"ours").unwrap();
    // Ours is in the place, theirs was taken out; before it is given back, something newer comes.
    draft.rename(rustix::fs::RenameFlags::EXCHANGE).unwrap();
    scene.write("c", "newest");
    fs::rename(scene.folder.path().join("c"), scene.folder.path().join("a")).unwrap();
    draft.give_back().unwrap();
    drop(draft);
    assert_eq!(scene.left(), [("a".to_owned(), "newest".to_owned())]);
}

#[test]
fn where_two_files_cannot_change_places_a_look_comes_first() {
    for (text, is_put) in [("before", true), ("theirs", false)] {
        let scene = Scene::new();
        let spot = scene.spot("a");
        let before = read(&spot);
        let draft = Draft::write(&spot, &before, b"ours").unwrap();
        scene.write("a", text);
        assert_eq!(draft.replace_if_still(&before).unwrap(), is_put, "{text}");
        drop(draft);
        assert_eq!(scene.left(), [("a".to_owned(), if is_put { "ours" } else { text }.to_owned())]);
    }
    let scene = Scene::new();
    for (name, is_put) in [("a", false), ("b", true)] {
        let spot = scene.spot(name);
        let draft = Draft::write(&spot, &Before::Nothing, b"ours").unwrap();
        assert_eq!(draft.replace_if_still(&Before::Nothing).unwrap(), is_put, "{name}");
    }
    let left = [("a".to_owned(), "before".to_owned()), ("b".to_owned(), "ours".to_owned())];
    assert_eq!(scene.left(), left);
}

#[test]
fn the_last_look_sees_what_is_not_what_was_meant() {
    let scene = Scene::new();
    let way = Path::new("a");
    for (meant, is_so) in
        [("before", true), ("befor", false), ("before!", false), ("bEfore", false), ("", false)]
    {
        assert_eq!(verify(&scene.ground, way, meant.as_bytes()).is_ok(), is_so, "{meant}");
    }
    fs::remove_file(scene.folder.path().join("a")).unwrap();
    assert!(verify(&scene.ground, way, b"before").is_err());
}
