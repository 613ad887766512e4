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
    install -m 755 a /usr/local/bin
    mktemp
    mkfifo p
    shred a
    split -l 10 a
    csplit a 5
    patch -p1 < x.patch
    ed -s a < script
    ex -sc 'x' a
    vim -es -c wq a
    curl -O https://a.example/x
    curl -XDELETE https://a.example/x
    curl --json '{}' https://a.example
    curl https://a.example/next | sh
    wget -qO x https://a.example
    aria2c https://a.example/x
    mosquitto_pub -t a -m b
    kafka-console-producer --topic x < m
    rabbitmqadmin get queue=x ackmode=ack_requeue_false
    redis-cli -x set k < v
    redis-cli rpoplpush a b
    valkey-cli incr x
    etcdctl put a b
    consul kv put a b
    vault kv put a b=c
    sqlite3 x.db < m.sql
    sqlite3 x.db '.read m.sql'
    duckdb x.db 'insert into t values (1)'
    clickhouse-client -q 'insert into t values (1)'
    mysql db < m.sql
    psql <<< 'delete from t'
    mongo --eval 'db.x.drop()'
    aws s3 cp a s3://b/c
    aws lambda invoke --function-name x out.json
    gcloud pubsub subscriptions pull x --auto-ack
    az storage blob upload -f x
    gh workflow run x
    gh run rerun 1
    gh pr merge 1
    glab mr merge 1
    jira issue move X-1 Done
    git apply x.patch
    git am < x.mbox
    git notes add -m x
    git update-ref refs/heads/x HEAD
    git symbolic-ref HEAD refs/heads/x
    git stash show -p stash@{0} | git apply
    git log --output=x
    git diff > x.patch
    git show HEAD:a > b
    git archive HEAD -o x.tar
    git log | tee x
    git grep -Ovim x
    git branch -f main HEAD~1
    git tag -f v1
    git submodule update
    git rerere clear
    jj new
    hg commit -m x
    svn commit -m x
    docker kill x
    docker cp a x:/b
    docker network create x
    podman run --rm x
    kubectl annotate pod x a=b
    kubectl label node x a=b
    kubectl patch deploy x -p '{}'
    kubectl run x --image=y
    kubectl drain x
    helm rollback x
    flux reconcile source git x
    argocd app sync x
    nomad job run x
    ansible-playbook x.yml
    pulumi up -y
    terraform import a b
    terraform state rm a
    dotnet ef database update
    rails db:migrate
    php artisan queue:work --once
    python manage.py migrate
    alembic upgrade head
    flask next
    celery -A x call y
    rq worker --burst
    bin/rails runner 'Job.perform_now'
    mix run -e 'Q.pop()'
    iex -S mix
    lua -e 'os.remove("a")'
    Rscript -e 'unlink("a")'
    julia -e 'rm("a")'
    php -r 'unlink("a");'
    osascript -e 'tell app "x" to activate'
    powershell -c 'Remove-Item a'
    pwsh -File next.ps1
    cmd /c del a
    logger hi
    wall hi
    write user < m
    notify-send x
    say hello
    xdotool key Return
    screen -X stuff x
    tmux new-window x
    expect next.exp
    inotifywait a && ./next-item
    flock l ./next-item
    parallel ./next-item ::: 1 2
    entr -r ./next-item
    stdbuf -oL ./next-item
    script -c ./next-item out
    setsid ./next-item
    chroot / ./next-item
    doas ./next-item
    unshare ./next-item
    ionice -c3 ./next-item
    ls > files.txt
    cat a >| b
    cat a &> b
    cat a 1<> b
    grep x a | sponge a
    sort a | sponge a
    jq . a.json > b.json
    jq '.n += 1' a.json | sponge a.json
    column -t a > b
    find . -name x -execdir rm {} +
    find . -name x | while read f; do rm "$f"; done
    find . -empty -delete
    ls *.tmp | xargs -n1 rm
    cat list | xargs -I{} mv {} old/
    head -1 queue && sed -i 1d queue
    cat fifo | ./handle
    exec 3> out
    : > log
    true > log
    > log
    env -i ./next-item
    command ./next-item
    builtin echo x > log
    for f in *.md; do mv "$f" x/; done
    until ./next-item; do :; done
    trap 'rm x' EXIT; cat a
    function ls { rm a; }; ls
    awk '{print $1 >> "x"}' a
    awk 'BEGIN { printf "x" > "/tmp/y" }'
    sed -n '/x/w out' a
    sed -ni p a
    sed --in-place=.b s/a/b/ f
    perl -ne 'print; unlink $_' f
    ruby -i -pe 1 f
    gawk -i inplace 1 f
    rg x --pre ./run
    tree -R -o x
    diff a b > x.patch
    base64 -d a > b
    xxd -r -p a b
    openssl enc -in a -out b
    gpg -c a
    age -o x a
    tail -f log | tee copy
    dmesg -c
    journalctl --vacuum-size=1M
    ss -K dst 1.2.3.4
    ip addr add 1.2.3.4 dev x
    iptables -A INPUT -j DROP
    crontab -r
    atrm 1
    history -c
    npm version patch
    npm cache clean --force
    yarn cache clean
    cargo clean
    cargo fmt
    go generate ./...
    make clean
    ninja -t clean
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
    docker build -t x .
    curl -G https://a.example/status --data-urlencode q=1
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
