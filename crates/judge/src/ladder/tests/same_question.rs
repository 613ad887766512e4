//! Which calls are the same question when they are repeated: those that are known to only look, and nothing else. Each line is
//! sent again and again with the same answer.

use serde_json::{Value, json};

use super::{Ran, Rung, judged, sh, tool};
use crate::Call;
use crate::nature::{self, Looks};

const ANSWER: &str = "one line of an answer that tells something\nand another one";
const TIMES: usize = 20;

/// The strongest word before and after each of so many calls.
fn strongest(ran: &Ran) -> (Rung, Rung) {
    let run = vec![ran.clone(); TIMES];
    judged(&run).iter().fold((Rung::Observe, Rung::Observe), |(before, after), judged| {
        (before.max(judged.before.rung), after.max(judged.after.rung))
    })
}

#[test]
fn what_may_write_is_never_the_same_question() {
    let wrong: Vec<String> = MAY_WRITE
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.replace("\\n", "\n"))
        .filter_map(|line| {
            let looks = nature::looks(&Call::shell(&line));
            let [told, mute] = [ANSWER, ""].map(|answer| strongest(&sh(&line, 0, answer)));
            let is_wrong = looks != Looks::MayWrite || told != mute || told != (Rung::Observe, Rung::Observe);
            is_wrong.then(|| format!("{line}: {looks} {told:?} {mute:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(MAY_WRITE.lines().filter(|line| !line.trim().is_empty()).count() >= 150);
}

#[test]
fn what_only_seems_to_look_is_never_refused() {
    for line in SEEMS.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (before, _) = strongest(&sh(line, 0, ANSWER));
        assert_eq!((nature::looks(&Call::shell(line)), before), (Looks::Seems, Rung::Observe), "{line}");
    }
}

#[test]
fn a_look_that_is_known_is_told_and_in_a_loop_refused() {
    let wrong: Vec<String> = LOOKS
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.replace("\\n", "\n"))
        .filter_map(|line| {
            let looks = nature::looks(&Call::shell(&line));
            let said = strongest(&sh(&line, 0, ANSWER));
            let is_right = looks == Looks::Known && said.0 >= Rung::Deny && said.1 >= Rung::Hint;
            (!is_right).then(|| format!("{line}: {looks} {said:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(LOOKS.lines().filter(|line| !line.trim().is_empty()).count() >= 80);
}

#[test]
fn tools_are_known_by_their_whole_name_and_never_by_a_verb() {
    let check = |name: &str, input: Value, expected: Looks| {
        let ran = tool(name, input, true, ANSWER);
        let (before, after) = strongest(&ran);
        assert_eq!(nature::looks(&ran.call), expected, "{name}");
        assert_eq!(before >= Rung::Deny, expected == Looks::Known, "{name}: {before}");
        assert_eq!(after >= Rung::Hint, expected != Looks::MayWrite, "{name}: {after}");
    };
    for name in ["Read", "Grep", "Glob", "read_file", "list_dir"] {
        check(name, json!({ "path": "/w/a.rs" }), Looks::Known);
    }
    check("str_replace_editor", json!({ "command": "view", "path": "/w/a.rs" }), Looks::Known);
    for name in ["mcp__queue__get_next_job", "get_message", "mcp__fs__read", "fetch", "mcp__x__query"] {
        check(name, json!({ "id": 1 }), Looks::Seems);
    }
    for name in [
        "mcp__q__pop",
        "next_item",
        "create_issue",
        "advance",
        "mcp__x__create",
        "Write",
        "str_replace_editor",
        "roll",
    ] {
        check(name, json!({ "command": "insert", "path": "/w/a.rs" }), Looks::MayWrite);
    }
}

#[test]
fn a_step_between_two_looks_makes_a_new_question_of_the_second() {
    let (look, step) = (sh("cat state", 0, ANSWER), sh("./next-item", 0, ANSWER));
    let run: Vec<Ran> = (0..TIMES).flat_map(|_| [look.clone(), step.clone()]).collect();
    assert!(judged(&run).iter().all(|judged| judged.before.rung == Rung::Observe));
}

/// Programs that write, that may, and that nobody knows.
const MAY_WRITE: &str = r#"
    echo hi >> log
    echo hi > log
    printf x | tee log
    printf x | tee -a log >/dev/null
    ./next-item
    ./next-item --peek
    next-item
    /srv/bin/poll
    ./cat a
    bin/ls
    /tmp/grep x y
    curl -X POST https://a.example/jobs
    curl -d a=1 https://a.example
    curl -sS --data-binary @x https://a.example
    curl -T x https://a.example
    curl -o x https://a.example
    wget https://a.example/x
    http POST a.example x=1
    psql -c 'insert into t values (1)'
    psql -c "select nextval('s'); delete from t"
    psql -f x.sql
    psql -c 'with d as (delete from t returning 1) select * from d'
    mysql -e 'update t set a=a+1'
    sqlite3 x.db "insert into t values (1)"
    redis-cli incr hits
    redis-cli lpop queue
    mongosh --eval 'db.x.insertOne({})'
    git push
    git push origin main
    git pull
    git commit -am x
    git commit --allow-empty -m x
    git stash
    git stash pop
    git add -A
    git checkout main
    git reset --hard
    git merge x
    git rebase main
    git cherry-pick abc
    git fetch
    git branch new
    git branch -D old
    git tag v1
    git remote add o https://a.example/x.git
    git config user.name x
    git bisect good
    git worktree add ../x
    git reflog expire --all
    git -c alias.status='!rm x' log
    git gc
    git diff --output=x
    git bundle create x HEAD
    sed -i s/a/b/ f
    sed -i.bak s/a/b/ f
    sed -n 'w out' f
    sed 's/a/b/w out' f
    sed 's/a/date/e' f
    sed -f script f
    perl -pi -e s/a/b/ f
    perl -e 'unlink x'
    awk '{print > "out"}' f
    awk 'BEGIN{system("rm x")}'
    awk '{print | "sh"}' f
    awk -i inplace '{print}' f
    find . -name x -delete
    find . -name x -exec rm {} \;
    find . -name x -exec sh -c 'rm $0' {} \;
    find . -fprint out
    find . -name x | xargs rm
    find . -name x -print0 | xargs -0 rm -f
    ls | xargs touch
    fd x -x rm
    fd x -X rm
    sort -o f f
    sort --output=f f
    uniq a b
    shuf -o f f
    xxd -r a b
    tree -o out
    rm -rf build
    mv a b
    cp a b
    touch a
    mkdir -p x
    ln -sf a b
    chmod +x a
    truncate -s 0 f
    dd if=a of=b
    tar xzf x.tgz
    unzip x.zip
    rsync -a a b
    kubectl apply -f x.yaml
    kubectl delete pod x
    kubectl create job x --from=cronjob/y
    kubectl scale --replicas=3 deploy/x
    kubectl exec x -- ./next-item
    kubectl rollout restart deploy/x
    docker run x
    docker exec x ./next-item
    docker compose up -d
    docker rm x
    docker restart x
    helm upgrade x y
    terraform apply -auto-approve
    aws s3 rm s3://a/b
    aws sqs receive-message --queue-url x
    python -c 'import q; q.pop()'
    python3 -c 'print(1)'
    python pop.py
    python -m worker.once
    node -e 'require("./q").pop()'
    node step.js
    ruby -e 'puts 1'
    bash -c './next-item'
    bash deploy.sh
    sh -c 'cat a > b'
    bash <<'EOF'\nrm x\nEOF
    cat <<'EOF' > a\nx\nEOF
    cat <<'EOF' | sh\nrm x\nEOF
    cat <<'EOF' | psql\ninsert into t values (1)\nEOF
    python - <<'EOF'\nopen("a","w")\nEOF
    echo $(rm x)
    echo `./next-item`
    cat <(./next-item)
    cat $(./next-item)
    ls "$(touch x)"
    x=$(./next-item); echo $x
    eval "./next-item"
    alias ls=rm; ls x
    cat() { rm "$1"; }; cat x
    $CMD a
    "$TOOL" status
    PATH=/evil:$PATH cat a
    LD_PRELOAD=./x.so cat a
    GIT_EXTERNAL_DIFF=./x git diff
    cat a > b
    cat a | tee b
    grep x a >> b
    cat a; rm a
    cat a && ./next-item
    cat a || ./next-item
    ./next-item & cat a
    for i in 1 2; do ./next-item; done
    while read x; do echo $x >> log; done < f
    if [ -f a ]; then rm a; fi
    npm install
    npm publish
    pip install x
    cargo install x
    cargo publish
    apt-get install -y jq
    systemctl restart nginx
    kill 123
    crontab x
    at now < x
    mail -s x y < z
    ssh host cat a
    ssh host ./next-item
    nc host 25 < mail
    gh pr create
    gh issue comment 1 -b x
    gh api -X POST repos/a/b/issues
    npm test > out.log
    cargo test 2>&1 | tee log
    make deploy
    just deploy
    timeout 5 ./next-item
    nice ./next-item
    env ./next-item
    nohup ./next-item
    watch ./next-item
    tmux send-keys -t x Enter
    sudo ./next-item
    cargo run
    npm run next
    go run ./cmd/next
    make run
    mise run next
    ip link set eth0 down
    hostname new
    date -s tomorrow
    mount -o remount /x
    openssl rand -out key 32
    xargs -a list rm
    yq -i .a=1 f
    tail -f log | ./handle
    tee a
    set -e; ./next-item
    cd /srv && ./next-item
"#;

/// Looks at what lies elsewhere, and work that is the same twice.
const SEEMS: &str = "
    cargo test
    npm test
    make
    kubectl get pods
    curl -s https://a.example/status.txt
    docker images
    gh pr view 1
    psql -c 'select 1'
    uname -a
    terraform plan
";

/// Looks at files.
const LOOKS: &str = r#"
    cat a
    /bin/cat a
    /usr/bin/grep x a
    cat a b | head -5
    cat -n a
    head -20 a
    head -c 100 a
    tail -n 50 log
    tail -50 log
    ls
    ls -la src
    ls -la src | head
    cd src && ls
    cd src && grep -rn x . | head -20
    grep -rn needle src
    grep -c x a
    grep -E 'a|b' a
    grep x a || true
    grep x a 2>/dev/null
    grep x a > /dev/null
    egrep x a
    rg needle
    rg -n --glob '*.rs' needle src
    rg -l x | sort
    find . -name '*.rs'
    find . -type f -newer a
    find . -name '*.rs' | wc -l
    find . -name '*.rs' | xargs grep x
    find . -name '*.rs' -print0 | xargs -0 wc -l
    find . -name x -exec cat {} \;
    find . -name x -exec grep -l y {} +
    fd x
    tree -L 2
    wc -l a
    wc -l < a
    sort a
    sort a | uniq -c | sort -rn | head
    sort -k2 -t, a
    uniq a
    cut -d, -f1 a
    cut -d: -f1 /etc/passwd | sort
    tr a-z A-Z < a
    diff a b
    diff -u a b | head -50
    cmp a b
    comm -12 a b
    stat a
    file a
    du -sh src
    readlink -f a
    realpath a
    md5sum a
    sha256sum a b
    strings a | head
    od -c a | head
    hexdump -C a | head
    xxd a | head
    jq . a.json
    jq -r '.a[] | select(.b > 1)' a.json
    cat a.json | jq .b
    yq .a f
    sed -n 1,20p a
    sed -n '10,20p;30q' a
    sed -n '/fn main/,/^}/p' a
    sed 's/a/b/g' a
    sed -e 's/a/b/' a
    sed -n 5p a | cut -c1-80
    awk '{print $1}' a
    awk -F, '{print $2}' a
    awk 'NR==5' a
    awk '/x/{n++} END{print n}' a
    git status
    git status --short
    git -C src status
    git log --oneline -5
    git log -p -1
    git diff
    git diff HEAD~1 -- a
    git diff --cached --stat
    git show HEAD
    git show HEAD:a | head
    git blame a
    git ls-files | wc -l
    git rev-parse HEAD
    git branch
    git branch -a
    git branch --show-current
    git remote -v
    git stash list
    git grep -n x
    echo start; cat a
    echo "---"; cat a; echo "---"; cat b
    cat <<'EOF' | grep x\nx\nEOF
    cat $(find . -name a)
    diff <(sort a) <(sort b)
    for f in a b; do cat $f; done
    if [ -f a ]; then cat a; fi
    test -f a && cat a
    bash -c 'cat a'
    timeout 5 cat a
    LC_ALL=C sort a
    nl -ba a | sed -n 3p
    zcat a.gz | head
    GIT_PAGER=cat git log -3
    cat a 2>&1 | tail -3
"#;
