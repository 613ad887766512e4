//! Calls as agents really make them, and what they put at risk.

use serde_json::json;

use super::{At, Counts, Folder, Risk, Target, of, rows};
use crate::{Call, Lang};

/// The row and its targets. A trailing `+` says that the call makes the file where there is none, `!` that folders which can be
/// made again are at risk, `?` after a folder that the call stays where it was if there is no such folder.
fn shown(risk: Option<Risk>) -> String {
    let Some(risk) = risk else { return "none".to_owned() };
    let targets: Vec<String> = risk.targets().iter().map(shown_target).collect();
    let edits = if risk.counts() == Counts::Edits { " (edits)" } else { "" };
    format!("{}{edits}: {}", risk.row(), targets.join(", "))
}

fn shown_target(target: &Target) -> String {
    let at = match &target.at {
        At::Path { from, path } => format!("{}{path}", shown_folder(from)),
        At::Glob { from, pattern } => format!("glob {}{pattern}", shown_folder(from)),
        At::Over { from, sources, to, moves } => {
            let verb = if *moves { "move" } else { "over" };
            format!("{verb} {}({} > {to})", shown_folder(from), sources.join(" "))
        }
        At::Repository { from } => format!("repository({})", shown_folder(from)),
        At::GitFolder { from } => format!("git({})", shown_folder(from)),
        At::GitState { from } => format!("git-state({})", shown_folder(from)),
        At::GitIndex { from, beside } => {
            format!("index({}){}", shown_folder(from), if *beside { " beside" } else { "" })
        }
        At::Named { from, names } => format!("named({}{})", shown_folder(from), names[0]),
        At::Workspace { from } => format!("workspace({})", shown_folder(from)),
    };
    let makes = if target.only_if_there { "" } else { "+" };
    at + makes + if target.rebuildable { "!" } else { "" }
}

fn shown_folder(folder: &Folder) -> String {
    folder.steps.iter().map(|step| format!("{}{}/", step.to, if step.or_stay { "?" } else { "" })).collect()
}

fn check(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|(line, expected)| (line, expected, shown(of(&Call::shell(*line)))))
        .filter(|(_, expected, seen)| seen != *expected)
        .map(|(line, expected, seen)| format!("{line}\n  expected {expected}\n  seen     {seen}"))
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn check_tool(cases: &[(&str, serde_json::Value, &str)]) {
    for (tool, input, expected) in cases {
        assert_eq!(shown(of(&Call::new(*tool, input.clone()))), *expected, "{tool} {input}");
    }
}

#[test]
fn removing_puts_the_named_files_at_risk() {
    check(&[
        ("rm -rf src", "files.remove-tree: src!"),
        ("rm -fr src docs/", "files.remove-tree: src!, docs/!"),
        ("rm -r -- -odd", "files.remove-tree: -odd!"),
        ("rm --recursive build", "files.remove-tree: build!"),
        ("rm a.txt 'b c.txt'", "files.remove: a.txt!, b c.txt!"),
        ("/bin/rm -f x", "files.remove: x!"),
        ("rm *.log", "files.remove: glob *.log!"),
        ("rm -rf {dist,build}/out", "files.remove-tree: dist/out!, build/out!"),
        ("rm part{1..9}.txt", "files.remove: glob part*.txt!"),
        ("rm -rf .", "files.remove-tree: .!"),
        ("rm -rf *", "files.remove-tree: glob *!"),
        ("rm -rf /", "files.remove-tree: /!"),
        ("rm -rf ~/old", "files.remove-tree: ~/old!"),
        ("rm -rf $HOME/old \"${HOME}\"/x", "files.remove-tree: ~/old!, ~/x!"),
        ("rm -rf \"$PWD/out\"", "files.remove-tree: ./out!"),
        ("rm -rf $(pwd)/out", "files.remove-tree: ./out!"),
        ("unlink a", "files.remove: a!"),
        ("rm 'a{}b'", "files.remove: a{}b!"),
        ("shred -u -n 3 key.pem", "files.shred: key.pem"),
        ("npx rimraf dist", "files.remove: dist!"),
        ("truncate -s 0 app.log", "files.truncate: app.log"),
        ("dd if=/dev/zero of=disk.img bs=1M", "files.dd: disk.img+"),
        ("dd if=a of=/dev/null", "none"),
        ("dd if=a of=/dev/sda", "files.dd: /dev/sda+"),
        ("mkfs.ext4 /dev/sdb1", "files.format-disk: /dev/sdb1"),
        ("mkfs -t ext4 /dev/sdb1", "files.format-disk: ext4, /dev/sdb1"),
        ("wipefs /dev/sdb", "none"),
        ("wipefs -a /dev/sdb", "files.wipe-disk: /dev/sdb"),
        ("blkdiscard /dev/nvme0n1", "files.format-disk: /dev/nvme0n1"),
        ("cat a > /dev/sdb", "files.redirect: /dev/sdb+"),
        ("echo x > /dev/shm/y; rm /dev/shm/z", "files.remove: /dev/shm/y+, /dev/shm/z!"),
        ("echo x > /dev/tty; echo y > /dev/fd/3; echo z > /dev/stderr", "none"),
        ("rsync -a --remove-source-files a/ b/", "files.sync-move: a/!, b/!"),
        ("rsync -a --delete a/ b/", "files.sync-delete: b/!"),
        ("python3 -c \"import os; os.system('rm x')\"", "code.inline: workspace()"),
        ("node -e \"require('child_process').execSync('rm x')\"", "code.inline: workspace()"),
    ]);
}

#[test]
fn what_only_looks_like_a_risk_is_none() {
    check(&[
        ("grep -r rm src", "none"),
        ("echo \"rm -rf /\"", "none"),
        ("rm --help", "none"),
        ("rm --version", "none"),
        ("git clean -n", "none"),
        ("git clean -fdn", "none"),
        ("git clean --dry-run -fdx", "none"),
        ("git commit --dry-run", "none"),
        ("rsync -an --delete a/ b/", "none"),
        ("rmdir empty", "none"),
        ("mkdir -p a && touch a/b", "none"),
        ("cat <<'EOF'\nrm -rf /\nEOF", "none"),
        ("git log --oneline && git status && git diff", "none"),
        ("git stash list", "none"),
        ("git stash show -p", "none"),
        ("git checkout -b topic", "none"),
        ("git switch main", "none"),
        ("git branch -a", "none"),
        ("git tag -a v1 -m 'first'", "none"),
        ("git fetch --all --prune", "none"),
        ("git push --force", "none"),
        ("git worktree add ../x", "none"),
        ("find . -name '*.rs' -type f", "none"),
        ("find . -name '*.rs' -exec grep -l x {} +", "none"),
        ("find . -name '*.rs' | xargs grep x", "none"),
        ("sed -n 's/a/b/p' f", "none"),
        ("sed 's/-i/x/' f", "none"),
        ("perl -ne 'print' f", "none"),
        ("awk '{print $1}' f", "none"),
        ("gzip -c a", "none"),
        ("xz --list a.xz", "none"),
        ("zip -r a.zip src", "none"),
        ("trap 'echo done' EXIT", "none"),
        ("trap - EXIT", "none"),
        ("perl -e 'print 1'", "none"),
        ("chmod -r f", "none"),
        ("cargo build --release > /dev/null 2>&1", "none"),
        ("make clean && cargo clean", "none"),
        ("npm ci", "none"),
        ("npm run build && npm test", "none"),
        ("cargo test && cargo clippy", "none"),
        ("cargo fmt --check", "none"),
        ("cargo fmt --all -- --check", "none"),
        ("black --check .", "none"),
        ("ruff check .", "none"),
        ("prettier --check src", "none"),
        ("eslint src", "none"),
        ("gofmt -l .", "none"),
        ("tar -tzf a.tgz", "none"),
        ("unzip -l a.zip", "none"),
        ("curl -s https://a.example/x", "none"),
        ("curl -s -o /dev/null https://a.example/x", "none"),
        ("docker run --rm img", "none"),
        ("ssh host.example 'rm -rf /srv/x'", "none"),
        ("docker exec web rm -rf /app", "none"),
        ("docker exec web sh -c 'echo x > /app/y'", "none"),
        ("kubectl exec pod -- rm -rf /data", "none"),
        ("docker ps -q | xargs docker rm", "none"),
        ("python -c 'print(1)'", "none"),
        ("python3 script.py --mode w", "none"),
        ("d=$(mktemp -d) && cp x $d/ && rm -rf \"$d\"", "none"),
        ("cd $(mktemp -d) && echo x > y && rm -rf *", "none"),
        ("eval \"$(ssh-agent -s)\"", "none"),
        ("ls -la; pwd; which rm", "none"),
        ("test -f x && echo yes", "none"),
    ]);
}

#[test]
fn git_puts_its_files_or_its_folder_at_risk() {
    check(&[
        ("git reset --hard HEAD~1", "git.reset-hard: repository()"),
        ("git reset --keep main", "git.reset-hard: repository()"),
        ("git reset HEAD a.txt", "git.reset: git-state()"),
        ("git reset --soft HEAD~1", "git.reset: git-state()"),
        ("git clean -fd", "git.clean: .!"),
        ("git clean -fdx", "git.clean-ignored: .!"),
        ("git clean -ffdX build", "git.clean-ignored: build!"),
        ("git checkout -- .", "git.checkout-paths: ., index() beside"),
        ("git checkout .", "git.checkout-paths: ., index() beside"),
        ("git checkout HEAD~2 -- a.rs b.rs", "git.checkout-paths: a.rs, b.rs, index() beside"),
        // A word may be a branch or a file; if no file is called so, nothing is at risk.
        ("git checkout main", "git.checkout-paths: main, index() beside"),
        ("git checkout -f main", "git.checkout-force: repository()"),
        ("git switch --discard-changes main", "git.checkout-force: repository()"),
        ("git checkout -B topic", "git.branch-reset: git-state()"),
        ("git switch -C topic", "git.branch-reset: git-state()"),
        ("git restore src/a.rs", "git.restore: src/a.rs, git-state()"),
        ("git restore --source=HEAD~1 .", "git.restore: ., git-state()"),
        ("git restore --staged a", "git.unstage: git-state()"),
        ("git restore --staged --worktree a", "git.restore: a, git-state()"),
        ("git rebase -i main", "git.rebase: repository()"),
        ("git rebase --abort", "git.rebase: repository()"),
        ("git am < x.patch", "git.rebase: repository()"),
        ("git commit -am 'rm -rf all'", "git.commit: git-state()"),
        ("git commit --amend --no-edit", "git.commit: git-state()"),
        (
            "git add -A && git commit -m \"$(cat <<'EOF'\nfix: rm -rf\nEOF\n)\"",
            "git.commit: index(), git-state()",
        ),
        ("git add -A", "git.add (edits): index()"),
        ("git -C sub add a", "git.add (edits): index(sub/)"),
        ("git add -n a", "none"),
        ("git bisect start HEAD v1", "git.bisect: repository()"),
        ("git bisect log", "none"),
        ("git merge topic", "git.merge: repository()"),
        ("git pull --rebase", "git.merge: repository()"),
        ("git cherry-pick abc", "git.merge: repository()"),
        ("git revert HEAD", "git.merge: repository()"),
        ("git stash", "git.stash: repository()"),
        ("git stash push -m x", "git.stash: repository()"),
        ("git stash pop", "git.stash: repository()"),
        ("git stash drop", "git.stash-drop: git-state()"),
        ("git stash clear", "git.stash-drop: git-state()"),
        ("git branch -D topic", "git.branch-delete: git-state()"),
        ("git branch -f main HEAD~3", "git.branch-delete: git-state()"),
        ("git tag -d v1", "git.tag-delete: git-state()"),
        ("git update-ref -d refs/heads/x", "git.forget-names: git-state()"),
        ("git reflog expire --expire=now --all && git gc --prune=now", "git.forget: git-state(), git()"),
        ("git filter-branch --tree-filter 'rm x' HEAD", "git.rewrite-history: repository()"),
        ("git filter-repo --path x", "git.rewrite-history: repository()"),
        ("git worktree remove --force ../wt", "git.worktree-remove: ../wt!, git-state()!"),
        ("git rm -r old", "git.rm: old!, git-state()!"),
        ("git rm -r --cached old", "git.unstage: git-state()"),
        ("git mv a b", "git.mv: move (a > b)+, index() beside"),
        ("git apply fix.patch", "git.apply: workspace()"),
        ("git apply --check fix.patch", "none"),
        ("git -C sub reset --hard", "git.reset-hard: repository(sub/)"),
        ("git -c user.name=x -C a/b commit -C HEAD", "git.commit: git-state(a/b/)"),
        ("git --work-tree=/w reset --hard", "git.reset-hard: repository(/w/)"),
        ("git --no-pager reset --hard", "git.reset-hard: repository()"),
        ("GIT_WORK_TREE=/w git reset --hard", "git.reset-hard: repository(), repository(/w/)"),
        ("GIT_DIR=x/.git git reset --hard", "git.reset-hard: repository(), repository(x/.git/)"),
        ("env A=1 GIT_WORK_TREE=../w git clean -fd", "git.clean: .!, ../w/.!"),
        ("export GIT_DIR=/r; git branch -D x", "git.branch-delete: git-state(), git-state(/r/)"),
        ("D=/r; sudo GIT_DIR=$D nice git branch -D x", "git.branch-delete: git-state(), git-state(/r/)"),
        ("git --git-dir /r/.git branch -D x", "git.branch-delete: git-state(), git-state(/r/.git/)"),
        ("git --git-dir=/r stash drop", "git.stash-drop: git-state(), git-state(/r/)"),
        ("git -C a -c core.workTree=/w reset --hard", "git.reset-hard: repository(a/), repository(/w/)"),
        (
            "git -c core.worktree=../../w reset --hard",
            "git.reset-hard: repository(), repository(.git/../../w/)",
        ),
        ("GIT_DIR=/r git status", "none"),
    ]);
}

#[test]
fn writing_over_puts_what_is_there_at_risk() {
    check(&[
        ("mv a b", "files.move-over: move (a > b)+!"),
        ("mv -n a b", "none"),
        ("mv a b c/", "files.move-over: move (a b > c/)+!"),
        ("mv -t c a b", "files.move-over: move (a b > c)+!"),
        ("cp a b", "files.copy-over: over (a > b)+"),
        ("cp -r src/* dst/", "files.copy-over: over (src/* > dst/)+"),
        ("cp -n a b", "none"),
        ("cp -rT a b", "files.copy-over: b+"),
        ("cp $SRC dst", "files.copy-over: dst+"),
        ("cp a \"$DST\"", "files.copy-over: workspace()"),
        ("cp a.cfg{,.bak}", "files.copy-over: over (a.cfg > a.cfg.bak)+"),
        ("install -m 644 a /opt/b", "files.install-over: over (a > /opt/b)+"),
        ("install -d x/y", "none"),
        ("ln -sfn ../a current", "files.link-over: over (../a > current)+"),
        ("ln -s a b", "none"),
        ("echo x > a.txt", "files.redirect: a.txt+"),
        ("echo x >| a.txt", "files.redirect: a.txt+"),
        ("make &> build.log", "files.redirect: build.log+"),
        ("make > out.log 2> err.log", "files.redirect: out.log+, err.log+"),
        ("> a.txt", "files.redirect: a.txt+"),
        (": > a.txt", "files.redirect: a.txt+"),
        ("cat > a.rs <<'EOF'\nfn main() { let x = 1 > 2; }\nEOF", "files.redirect: a.rs+"),
        ("echo x >> a.txt", "files.append (edits): a.txt+"),
        ("echo x >> a.txt && rm b", "files.remove: a.txt+, b!"),
        ("jq . a.json > \"$out\"", "files.redirect: workspace()"),
        ("for i in 1 2; do echo $i > out/$i.txt; done", "files.redirect: out/1.txt+, out/2.txt+"),
        ("for i in $(seq 9); do echo $i > out/$i.txt; done", "files.redirect: glob out/*.txt+"),
        ("for f in a/*.js; do sed -i s/a/b/ \"$f\"; done", "files.in-place: glob a/*.js"),
        ("for d in a b; do (cd $d && rm x); done", "files.remove: a/x!, b/x!"),
        ("for f; do rm $f; done", "files.remove: workspace()!"),
        ("echo x | tee a b", "files.tee: a, b"),
        ("echo x | sudo tee /etc/x.conf > /dev/null", "files.tee: /etc/x.conf"),
        ("echo x | tee -a a", "files.tee-append (edits): a"),
        ("sed -i 's/a/b/' f g", "files.in-place: f, g"),
        ("sed -i.bak -e 's/a/b/' -e 's/$x/y/' f", "files.in-place: f, f.bak+"),
        ("sed -Ei '' 's/a.*/b/' f", "files.in-place: f"),
        ("sed -n -i p f", "files.in-place: f"),
        ("sed --in-place=.bak 's/a/b/' src/*.rs", "files.in-place: glob src/*.rs"),
        ("gsed -i s/a/b/ f", "files.in-place: f"),
        ("sed -Ei.orig s/i/b/ f", "files.in-place: f, f.orig+"),
        ("sed --in-place=.old s/i/b/ f", "files.in-place: f, f.old+"),
        ("perl -pi.bak -e 's/a/b/' f", "files.in-place-code: f, f.bak+"),
        ("perl -pi -e 's/$a/b/' f", "files.in-place-code: f"),
        ("perl -i -pe 's/a/b/' f g", "files.in-place-code: f, g"),
        ("awk -i inplace '{print $1}' f", "files.awk-in-place: f"),
        ("yq -i '.a=1' f.yaml", "files.in-place-code: .a=1, f.yaml"),
        ("sort -o f f", "files.output-flag: f+"),
        ("chmod -R 755 dir", "files.mode-tree: dir"),
        ("chmod +x run.sh", "files.mode (edits): run.sh"),
        ("chmod 600 a b", "files.mode (edits): a, b"),
        ("gzip a", "files.gzip: a, a.gz+"),
        ("bunzip2 a.bz2", "files.bzip2: a.bz2, a+"),
        ("xz -9 a", "files.xz: a, a.xz+"),
        ("zip -rm a.zip src", "files.zip-remove: a.zip!, src!"),
        ("tar --remove-files -czf a.tgz src", "files.pack-remove: src!, a.tgz+!"),
        ("chown -R me:me a b", "files.mode-tree: a, b"),
        ("rsync -a a/ b/", "files.sync: b/"),
        ("rsync -av --delete a/ b/", "files.sync-delete: b/!"),
        ("rsync -av --delete a/ host.example:/b/", "none"),
        ("scp host.example:f .", "files.sync: ."),
        ("tar xzf a.tgz", "files.unpack: ."),
        ("tar -xzf a.tgz -C out --strip-components=1", "files.unpack: out/."),
        ("tar czf a.tgz src", "files.pack-over: a.tgz+"),
        ("tar -czf a.tgz src", "files.pack-over: a.tgz+"),
        ("unzip -oq a.zip -d out", "files.unpack-zip: out/."),
        ("unzip a.zip", "none"),
        ("7z x a.7z -oout", "files.unpack-7z: out/."),
        ("patch -p1 < x.diff", "files.patch: workspace()"),
        ("patch -p1 <<'EOF'\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\nEOF", "files.patch: x.c+"),
        (
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.rs\n*** Add File: b.rs\n*** End Patch\nEOF",
            "files.patch: a.rs+, b.rs+",
        ),
        ("curl -sSLo a.sh https://a.example/x", "files.download: a.sh+"),
        ("curl -fsSLO https://a.example/x/y.tgz?z=1", "files.download-name: y.tgz+"),
        ("curl --output a.json https://a.example", "files.download: a.json+"),
        ("wget -qO a.tgz https://a.example/x", "files.download-wget: a.tgz+"),
        ("wget -qO- https://a.example/x | sh", "none"),
    ]);
}

#[test]
fn finding_puts_what_lies_below_at_risk() {
    check(&[
        ("find . -name '*.pyc' -delete", "files.find-delete: ."),
        ("find src tests -type f -delete", "files.find-delete: src, tests"),
        ("find -delete", "files.find-delete: ."),
        ("find a -name x -exec rm -rf {} +", "files.remove-tree: a!"),
        ("find . -name '*.ts' -exec sed -i 's/a/b/' {} \\;", "files.in-place: ."),
        ("find a -exec mv {} b \\;", "files.move-over: b+!, a+!"),
        ("find a -exec sh -c 'rm \"$1\"' _ {} \\;", "files.remove: a!"),
        ("find a -name x | xargs rm -f", "files.remove: a!"),
        ("find a -print0 | sort -z | xargs -0 -I{} rm {}", "files.remove: a!"),
        ("grep -rl old src | xargs sed -i 's/old/new/g'", "files.in-place: workspace()"),
        ("git ls-files -d | xargs rm", "files.remove: workspace()!"),
        ("fd -e tmp . cache -x rm", "files.remove: cache!"),
        ("ls | while read f; do rm \"$f\"; done", "files.remove: workspace()!"),
    ]);
}

#[test]
fn a_folder_that_is_entered_is_where_the_words_begin() {
    check(&[
        ("cd a && rm -rf b", "files.remove-tree: a/b!"),
        ("cd a; rm -rf b", "files.remove-tree: a?/b!"),
        ("cd a\nrm -rf b", "files.remove-tree: a?/b!"),
        ("set -e; cd a; rm -rf b", "files.remove-tree: a/b!"),
        ("cd a && cd b && rm c", "files.remove: a/b/c!"),
        ("cd a && ls; rm c", "files.remove: a?/c!"),
        ("cd /x && rm -rf /y", "files.remove-tree: /y!"),
        ("cd ~/x && rm y", "files.remove: ~/x/y!"),
        ("cd && rm y", "files.remove: ~/y!"),
        ("(cd a && make) && rm b", "files.remove: b!"),
        ("(cd a && rm x) && (cd b && rm y)", "files.remove: a/x!, b/y!"),
        ("{ cd a; } && rm b", "files.remove: a/b!, b!"),
        ("if true; then cd a; fi; rm b", "files.remove: a?/b!, b!"),
        ("pushd a && rm b && popd && rm c", "files.remove: a/b!, c!"),
        ("cd a && cd - && rm b", "files.remove: b!"),
        ("cd \"$X\" && rm b", "files.remove: workspace()!"),
        ("D=a; cd $D && rm b", "files.remove: a/b!"),
        ("bash -c 'cd a && rm b'; rm c", "files.remove: a/b!, c!"),
        ("eval 'cd a' && rm b", "files.remove: a/b!, b!"),
        ("echo $(cd a && pwd); rm b", "files.remove: b!"),
        ("cd a && git reset --hard", "git.reset-hard: repository(a/)"),
        ("cd a && npm install", "lock.npm: named(a/package.json)"),
        ("f() { cd a; rm b; }; f", "files.remove: a?/b!"),
    ]);
}

#[test]
fn wrappers_and_joined_commands_are_looked_into() {
    check(&[
        ("sudo rm -rf x", "files.remove-tree: x!"),
        ("env A=1 timeout 5 rm x", "files.remove: x!"),
        ("busybox rm x", "files.remove: x!"),
        ("toybox rm x", "files.remove: x!"),
        ("unshare -r -w /w rm x", "files.remove: x!"),
        ("coproc rm x", "files.remove: x!"),
        ("busybox ls", "none"),
        ("awk 'BEGIN { system(\"rm -rf x\") }'", "code.inline-system: workspace()"),
        ("perl -e 'system \"rm x\"'", "code.inline-system: workspace()"),
        ("lua -e 'os.execute(\"rm x\")'", "code.inline-system: workspace()"),
        ("awk '{ print $1 }' x", "none"),
        ("python3 -c 'import platform; print(platform.system())'", "none"),
        ("bash -lc 'rm -rf x'", "files.remove-tree: x!"),
        ("bash <<'EOF'\nrm -rf x\nEOF", "files.remove-tree: x!"),
        ("trap 'rm -f x' EXIT; make", "files.remove: x!"),
        ("perl -e \"unlink qw(a)\"", "code.inline-perl: workspace()"),
        ("true || rm x", "files.remove: x!"),
        ("if [ -d x ]; then rm -rf x; fi", "files.remove-tree: x!"),
        ("ls & rm x", "files.remove: x!"),
        ("echo $(rm x)", "files.remove: x!"),
        ("rm a && git reset --hard && echo > b", "git.reset-hard: a!, repository(), b+"),
        ("docker exec web rm a && rm b", "files.remove: b!"),
        ("docker exec web cat /x > y", "files.redirect: y+"),
        ("xargs rm < list", "files.remove: workspace()!"),
        ("rm -rf \"$DIR\"", "files.remove-tree: workspace()!"),
        ("DIR=build; rm -rf \"$DIR/x\"", "files.remove-tree: build/x!"),
        ("export OUT=dist && rm -rf ${OUT}", "files.remove-tree: dist!"),
        ("FILES='a b'; rm $FILES", "files.remove: a b!, a!, b!"),
        ("rm -rf build/$NAME", "files.remove-tree: glob build/**!"),
        ("rm -rf build/$NAME/x", "files.remove-tree: glob build/**/x!"),
        ("rm -rf build/$NAME.o", "files.remove-tree: glob build/*.o!"),
        ("cp a build/$NAME", "files.copy-over: glob build/**+"),
        ("cd build/$NAME && rm x", "files.remove: workspace()!"),
        ("rm -rf $(git ls-files)", "files.remove-tree: workspace()!"),
        ("rm -rf ~someone/x", "files.remove-tree: workspace()!"),
        ("eval \"$CMD\"", "shell.unknown: workspace()"),
        ("python3 -c \"import shutil; shutil.rmtree('x')\"", "code.inline: workspace()"),
        ("python3 - <<'EOF'\nopen('x', 'w').write('y')\nEOF", "code.inline: workspace()"),
        ("uv run python - <<'EOF'\nPath('x').write_text('y')\nEOF", "code.inline: workspace()"),
        (
            "cat > /tmp/fix.py <<'EOF'\nopen('a', 'w')\nEOF\ncd /tmp && python fix.py",
            "files.redirect: /tmp/fix.py+, workspace(/tmp/)",
        ),
        ("cat > fix.py <<'EOF'\nprint(1)\nEOF\npython fix.py", "files.redirect: fix.py+"),
        ("node -e \"require('fs').writeFileSync('x','y')\"", "code.inline: workspace()"),
    ]);
}

#[test]
fn fixers_and_package_managers_rewrite_what_they_name() {
    check(&[
        ("npx prettier --write src", "code.fix: src"),
        ("prettier -w .", "code.fix-w: ."),
        ("npx eslint --fix", "code.fix: ."),
        ("eslint . --fix-dry-run --fix", "none"),
        ("black .", "code.format: ."),
        ("python -m black src tests", "code.format: src, tests"),
        ("ruff check --fix", "code.fix: ."),
        ("ruff format src", "code.format: src"),
        ("isort a.py", "code.format: a.py"),
        ("gofmt -w .", "code.fix-w: ."),
        ("clang-format -i a.c", "code.fix-i: a.c"),
        ("rubocop -A", "code.fix-a: ."),
        ("cargo fmt", "code.rewrite-project: workspace()"),
        ("cargo +nightly fmt --all", "code.rewrite-project: workspace()"),
        ("cargo clippy --fix --allow-dirty", "code.fix-project: workspace()"),
        ("cargo fix", "code.rewrite-project: workspace()"),
        ("go generate ./...", "code.rewrite-project: workspace()"),
        ("npm run lint:fix", "code.rewrite-project: workspace()"),
        ("pre-commit run --all-files", "code.rewrite-project: workspace()"),
        ("npm install left-pad", "lock.npm: named(package.json)"),
        ("npm --prefix web i", "lock.npm: named(web/package.json)"),
        ("npm install -g typescript", "none"),
        ("pnpm add x", "lock.pnpm: named(package.json)"),
        ("pnpm install --frozen-lockfile", "none"),
        ("yarn", "lock.yarn-bare: named(package.json)"),
        ("yarn add x", "lock.yarn: named(package.json)"),
        ("yarn build", "none"),
        ("bun add x", "lock.bun: named(package.json)"),
        ("cargo add serde", "lock.cargo: named(Cargo.toml)"),
        ("cargo rm serde", "lock.cargo: named(Cargo.toml)"),
        ("cargo update --manifest-path a/Cargo.toml", "lock.cargo: named(a//Cargo.toml)"),
        ("poetry add x", "lock.python: named(pyproject.toml)"),
        ("uv add x", "lock.python: named(pyproject.toml)"),
        ("uv pip install x", "none"),
        ("pip install x", "none"),
        ("pip-compile -o req.txt", "lock.pip-compile: named(requirements.txt), req.txt+"),
        ("bundle install", "lock.ruby: named(Gemfile)"),
        ("composer require x/y", "lock.php: named(composer.json)"),
        ("go mod tidy", "lock.go: named(go.mod)"),
        ("go mod download", "none"),
        ("go get example.com/x", "lock.go: named(go.mod)"),
    ]);
}

#[test]
fn tools_put_the_files_they_name_at_risk() {
    check_tool(&[
        ("Write", json!({"file_path": "/a/[id].tsx", "content": "x"}), "tool.write: /a/[id].tsx+"),
        ("mcp__fs__write_file", json!({"path": "a"}), "tool.write: a+"),
        ("MultiEdit", json!({"file_path": "a", "edits": [{"old_string": "x"}]}), "tool.many-edits: a+"),
        ("Edit", json!({"file_path": "a", "old_string": "x", "replace_all": true}), "tool.replace-all: a+"),
        ("Edit", json!({"file_path": "a", "old_string": "x"}), "tool.edit (edits): a+"),
        ("NotebookEdit", json!({"notebook_path": "n.ipynb"}), "tool.notebook: n.ipynb+"),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Update File: a\n*** Delete File: b\n*** End Patch"}),
            "tool.patch: a+, b+",
        ),
        ("apply_patch", json!("*** Begin Patch\n*** Update File: a\n*** End Patch"), "tool.patch: a+"),
        ("str_replace_editor", json!({"command": "view", "path": "a"}), "none"),
        ("str_replace_editor", json!({"command": "create", "path": "a"}), "tool.create: a+"),
        ("str_replace_editor", json!({"command": "insert", "path": "a"}), "tool.edit-command (edits): a+"),
        ("delete_file", json!({"path": "a"}), "tool.delete: a+!"),
        ("write_files", json!({"files": [{"path": "a"}, {"path": "b"}]}), "tool.write: a+, b+"),
        ("Read", json!({"file_path": "a"}), "none"),
        ("Grep", json!({"pattern": "rm -rf"}), "none"),
        ("shell", json!({"command": ["bash", "-lc", "rm x"], "workdir": "/w"}), "files.remove: /w/x!"),
        ("run_shell_command", json!({"command": "rm x", "dir_path": "w"}), "files.remove: w/x!"),
        ("run_shell_command", json!({"command": "rm x", "directory": "w"}), "files.remove: w/x!"),
        ("shell", json!({"command": ["rm", "-rf", "a b"]}), "files.remove-tree: a b!"),
    ]);
}

#[test]
fn the_folder_for_what_does_not_last_is_known_by_its_name() {
    check(&[
        ("echo x > $TMPDIR/y", "files.redirect: $TMPDIR/y+"),
        ("rm -rf \"${RUNNER_TEMP}/y\"", "files.remove-tree: $RUNNER_TEMP/y!"),
        ("cd \"$TMPDIR\" && rm y", "files.remove: $TMPDIR/y!"),
        ("rm \"${TMPDIR:-/tmp}/y\"", "files.remove: $TMPDIR/y!, /tmp/y!"),
        ("TMPDIR=out; rm $TMPDIR/y", "files.remove: out/y!"),
        ("rm build/$TMPDIR/y", "files.remove: glob build/**/y!"),
    ]);
}

#[test]
fn of_too_many_files_the_folders_that_hold_them_are_at_risk_wherever_they_are() {
    let held = |line: &dyn Fn(usize) -> String| {
        let line: String = (0..300).map(line).collect();
        let risk = of(&Call::shell(line)).expect("removing is a risk");
        let mut held: Vec<String> = risk.targets().iter().map(shown_target).collect();
        held.retain(|target| !target.contains(".txt"));
        held.join(", ")
    };
    assert_eq!(held(&|n| format!("rm /data/d/{n}.txt; ")), "/data/d!");
    assert_eq!(held(&|n| format!("rm /data/{n}/x.txt; ")), "/data!");
    assert_eq!(held(&|n| format!("rm a/{n}.txt; ")), "a!");
    assert_eq!(held(&|n| format!("rm ~/{n}.txt; ")), "~!");
    assert!(held(&|n| format!("(cd /data/d && rm {n}.txt); ")).contains("/data/d!"));
}

#[test]
fn a_line_of_ten_thousand_risks_names_the_whole_project() {
    let line: String = (0..10_000).map(|n| format!("rm f{n}; ")).collect();
    let risk = of(&Call::shell(line)).expect("removing is a risk");
    assert!(risk.targets().len() <= 257);
    assert!(risk.targets().iter().any(|target| matches!(target.at, At::Workspace { .. })));
}

#[test]
fn every_row_says_why_in_both_languages() {
    for (id, _, why) in rows() {
        assert!(why.iter().all(|text| !text.is_empty()), "{id}");
    }
    let risk = of(&Call::shell("git reset --hard")).expect("a reset is a risk");
    assert_eq!(risk.why(Lang::En), "it throws away all changes that are not committed");
    assert_eq!(risk.why(Lang::Zh), "它会丢弃所有未提交的更改");
}

proptest::proptest! {
    #[test]
    fn any_text_is_looked_at_without_a_fault(line in ".{0,200}", odd in "[rm${}()`'\"*~ /;|&<>a-c-]{0,60}") {
        let _ = of(&Call::shell(line));
        let _ = of(&Call::shell(format!("rm {odd}")));
        let _ = of(&Call::shell(format!("find {odd} -exec mv {odd}")));
        let _ = of(&Call::shell(format!("tar {odd}; A={odd}; cd $A; cp -r $A {odd}")));
    }
}
