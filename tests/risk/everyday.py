"""Commands people and agents type all day, by kind of project. Written before the rules, and not from them.

A line starts with ``r`` when the command only reads, and with ``c`` when it changes something, runs code of the
project, or speaks to a network service that could. ``\\n`` inside a line stands for a newline. The list leaves out
what the notes rate dangerous by number although people do type it: ``rm``, ``kill PID``, ``sudo``, ``npx``,
``python -c``, ``eval``.
"""

from __future__ import annotations

_TABLE = r"""
[shell and files]
r ls
r ls -la
r ls -lah src/
r pwd
r cat README.md
r cat -n src/main.c
r head -n 20 CHANGELOG.md
r head -50 log.txt
r tail -n 100 app.log
r wc -l *.py
r grep -rn "TODO" .
r grep -n 'def main' app.py
r grep -E "error|warn" server.log | head -20
r grep -rl foo --include=*.ts src
r rg -n "class \w+Error" src
r rg --files | head -100
r rg -uu -g '!node_modules' needle
r find . -name '*.py' -type f
r find src -maxdepth 2 -type d
r find . -type f -size +10M
r find . -name "*.log" -mtime +7 -print
r find . -name '*.js' -not -path '*/node_modules/*'
r find . -type f | wc -l
r du -sh *
r du -h --max-depth=1 . | sort -h
r df -h
r stat package.json
r file build/app
r which python3
r type ls
r command -v docker
r whoami
r id
r uname -a
r date
r date +%Y-%m-%d
r date -u +"%Y-%m-%dT%H:%M:%SZ"
r uptime
r free -m
r ps aux | grep node
r ps -ef
r env | sort
r printenv PATH
r echo "$PATH"
r echo $HOME
r echo hello world
r printf '%s\n' one two three
r tree -L 2
r tree -I node_modules
r basename /a/b/c.txt
r dirname "$0"
r realpath .
r readlink -f /usr/bin/python3
r diff a.txt b.txt
r diff -ru old new | less
r cmp a.bin b.bin
r sort names.txt | uniq -c | sort -rn | head
r cut -d: -f1 /etc/passwd
r tr a-z A-Z < in.txt
r sed -n '1,40p' src/app.py
r sed -n '/start/,/end/p' notes.md
r cat file | sed 's/foo/bar/g'
r md5sum dist.tar.gz
r sha256sum -c SHA256SUMS
r xxd -l 64 image.bin
r hexdump -C file.bin | head
r od -c file | head -5
r strings core | grep -i version
r test -f setup.py && echo yes
r [ -d node_modules ] || echo missing
r [[ -f .env ]] && echo present
r cd src && ls -la
r cd /tmp; pwd
r ls src 2>/dev/null || echo none
r cat missing.txt 2>&1 | head -1
r ls -t | head -1
r ls *.txt | xargs wc -l
r git ls-files | xargs grep -l TODO
r for f in *.md; do echo "$f"; head -3 "$f"; done
r while read -r l; do echo "$l"; done < list.txt
r diff <(sort a.txt) <(sort b.txt)
r echo "today is $(date)"
r comm -12 <(ls a) <(ls b)
r seq 1 10
r column -t data.txt
r nl -ba script.sh | sed -n '10,20p'
r tac log | head
r paste a.txt b.txt
r fold -w 80 text
r jq . package.json
r jq -r '.version' package.json
r cat data.json | jq '.items[] | .name'
r less README.md
r man ls
r true
r sleep 2
r ls -la && git status && cat Makefile
r lsof -i :3000
r ss -tlnp
r history | tail -20
r tar -tzf release.tar.gz
r tar tvf backup.tar
r unzip -l archive.zip
r zcat app.log.gz | grep ERROR
r gzip -l file.gz
r rm --help
r bash --version
r timeout 10 cat fifo.txt
r time ls -R > /dev/null
r nice -n 10 find . -name core
r LC_ALL=C sort words.txt
r TZ=UTC date
r awk --version
r export -p
r ulimit -a
r getent hosts localhost
r groups
r locale
r tty
r nproc
r lscpu
r lsblk
c mkdir -p build/out
c touch src/__init__.py
c cp config.example.yml config.yml
c cp -r templates dist/
c mv old.py new.py
c ln -s ../lib lib
c chmod +x scripts/run.sh
c chmod 644 file.txt
c echo "hello" > out.txt
c echo "line" >> notes.txt
c cat a b > c
c printf 'x\n' | tee result.txt
c sed -i 's/foo/bar/' config.ini
c sort -o sorted.txt names.txt
c tar -czf out.tar.gz dist
c tar xzf release.tar.gz
c tar -xf pkg.tar -C /tmp/pkg
c unzip archive.zip -d out
c zip -r site.zip public
c gzip access.log
c gunzip data.gz
c curl -s https://example.com/api | jq .
c curl -fsSL https://example.com/file.tgz -o file.tgz
c curl -I https://example.com
c wget https://example.com/data.csv
c awk '{print $1}' access.log | sort | uniq -c
c awk -F, '{ s += $3 } END { print s }' data.csv
c bash scripts/build.sh
c sh ./configure --prefix=/usr/local
c ./gradlew tasks
c ./run.sh --fast
c cat <<EOF > config.json\n{"a": 1}\nEOF
c cat > notes.md <<'EOF'\n# Notes\nrm is a command\nEOF
c mktemp -d
c export FOO=bar
c export PATH="$HOME/.local/bin:$PATH"
c find . -name '*.py' | xargs sed -i 's/a/b/'
c rsync -av src/ backup/
c split -l 1000 big.csv part_
c patch -p1 < fix.patch
c source .venv/bin/activate
c perl -pe 's/foo/bar/' file.txt
c nohup ./server > server.log 2>&1 &
c kill %1
c truncate --help > help.txt
c watch -n 5 ./status.sh

[git]
r git status
r git status -sb
r git log --oneline -10
r git log --graph --decorate --all
r git log -p -- src/app.py
r git log --since="2 weeks ago" --author=me
r git --no-pager log -5
r git diff
r git diff --stat
r git diff HEAD~1 -- src
r git diff --cached
r git diff main...feature
r git show HEAD
r git show HEAD:README.md
r git blame -L 10,20 app.py
r git branch
r git branch -a
r git branch -vv
r git branch --show-current
r git branch --list 'feat/*'
r git branch --contains abc123
r git remote -v
r git remote
r git remote get-url origin
r git rev-parse HEAD
r git rev-parse --abbrev-ref HEAD
r git ls-files
r git ls-files --others --exclude-standard
r git ls-tree -r HEAD --name-only
r git grep -n needle
r git tag
r git tag -l 'v1.*'
r git describe --tags
r git stash list
r git stash show -p
r git shortlog -sn
r git reflog -10
r git config --list
r git config --get user.email
r git config user.name
r git merge-base main HEAD
r git cat-file -p HEAD
r git rev-list --count HEAD
r git worktree list
r git check-ignore -v build
r git -C ../other status
r git clean -n
r git --version
r git help rebase
r git cherry -v main
r git name-rev HEAD
r git diff --name-only | xargs wc -l
r git log --format='%h %s' | head -5
r git log 2>/dev/null | head
r GIT_PAGER=cat git log -3
r git symbolic-ref HEAD
r git for-each-ref --sort=-committerdate refs/heads
r git submodule status
r git ls-remote origin
c git add .
c git add -A && git commit -m "fix: handle rm -rf in docs"
c git commit -am 'wip'
c git commit --amend --no-edit
c git push
c git push -u origin feature
c git pull
c git pull --rebase
c git fetch --all --prune
c git checkout main
c git checkout -b feature/x
c git switch -c topic
c git merge main
c git rebase main
c git rebase --continue
c git cherry-pick abc123
c git revert HEAD
c git reset HEAD~1
c git reset --soft HEAD~1
c git restore --staged app.py
c git stash
c git stash pop
c git tag v1.2.0
c git clone https://example.com/x/y.git
c git init
c git remote add origin git@example.com:x/y.git
c git config user.name "Me"
c git submodule update --init --recursive
c git worktree add ../wt feature
c git apply fix.diff
c git mv a b
c git branch new-branch
c git branch -d merged
c git bisect start
c gh pr create --fill
c gh pr checkout 12
r gh pr list
r gh pr view 12
r gh pr diff 12
r gh issue list --label bug
r gh run list
r gh auth status

[python]
r python3 --version
r python --version
r pip list
r pip show requests
r pip freeze
r pip --version
r pip list --outdated
r uv --version
r uv pip list
r poetry show
r poetry env info
r cat requirements.txt
r grep -rn "import numpy" src/
r ruff --version
r which pytest
r cat pyproject.toml | grep -A5 dependencies
r find . -name "test_*.py" | sort
r pipdeptree
r conda list
r conda env list
c python3 manage.py migrate
c python manage.py runserver
c python -m venv .venv
c python3 -m pytest -q
c pytest
c pytest -x -k "test_login and not slow"
c pytest tests/unit --cov=src 2>&1 | tail -20
c pip install -r requirements.txt
c pip install -e '.[dev]'
c uv sync
c uv run pytest -q
c uv pip install httpx
c poetry install
c poetry run python app.py
c ruff check --fix .
c ruff check .
c ruff format src tests
c black .
c mypy src
c mypy --strict src/pkg
c isort .
c flake8 src
c tox -e py311
c nox -s tests
c python -m build
c python setup.py sdist
c coverage run -m pytest && coverage report
c pre-commit run --all-files
c jupyter nbconvert --to html nb.ipynb
c PYTHONPATH=src python -m pkg.cli --help
c DJANGO_SETTINGS_MODULE=app.settings python manage.py check
c alembic upgrade head
c gunicorn app:app -b 0.0.0.0:8000
c python3 script.py < input.txt
c cat data.json | python3 -m json.tool
c conda install numpy

[javascript]
r node --version
r npm --version
r npm ls
r npm ls --depth=0
r npm outdated
r npm view react version
r npm config get registry
r yarn --version
r yarn list --depth=0
r pnpm list
r pnpm why lodash
r cat package.json | jq .scripts
r jq '.dependencies | keys' package.json
r ls node_modules/.bin | head
r grep -rn "useEffect(" src --include=*.tsx | wc -l
r find src -name '*.test.ts'
r npm run
r npm audit
c npm install
c npm ci
c npm install --save-dev typescript
c npm test
c npm run build
c npm run lint -- --fix
c npm start
c yarn
c yarn add axios
c yarn build
c yarn test --watch=false
c pnpm install
c pnpm run dev
c pnpm -r build
c node server.js
c node --test
c node dist/index.js --port 3000
c tsc --noEmit
c eslint src --ext .ts,.tsx
c prettier --write .
c prettier --check src
c jest --runInBand
c vitest run
c vite build
c NODE_ENV=production npm run build
c NODE_OPTIONS=--max-old-space-size=4096 npm run build
c bun install
c deno test
c webpack --mode production
c npm version patch
c playwright test --headed
c npm publish --dry-run

[rust]
r cargo --version
r rustc --version
r cargo tree
r cargo tree -i serde
r rustup show
r cat Cargo.toml
r rg -n "unsafe" --type rust
r grep -rn "unwrap()" src | wc -l
r rustup toolchain list
r cargo search serde
c cargo build
c cargo build --release
c cargo check
c cargo test
c cargo test -- --nocapture parser
c cargo run -- --help
c cargo clippy --all-targets -- -D warnings
c cargo fmt
c cargo fmt --check
c cargo add serde --features derive
c cargo update -p tokio
c cargo doc --open
c cargo bench
c RUST_BACKTRACE=1 cargo test 2>&1 | tail -50
c RUST_LOG=debug cargo run
c cargo clean
c cargo publish --dry-run
c cargo install ripgrep
c rustfmt src/main.rs
c rustup update

[go]
r go version
r go env
r go env GOPATH
r go list ./...
r go list -m all
r go doc fmt.Println
r go help build
r cat go.mod
r grep -rn "func Test" --include=*_test.go .
r gofmt -l .
r gofmt -d main.go
r go mod graph
r go mod why example.com/x
c go build ./...
c go build -o bin/app ./cmd/app
c go test ./...
c go test -race -run TestFoo ./pkg/...
c go test -v -count=1 ./... 2>&1 | grep -E "FAIL|ok"
c go vet ./...
c go run .
c go run ./cmd/server
c go mod tidy
c go mod download
c go get example.com/x@latest
c go install ./cmd/...
c go generate ./...
c gofmt -w .
c go fmt ./...
c golangci-lint run
c CGO_ENABLED=0 GOOS=linux go build -o app .
c go env -w GOPRIVATE=example.com

[c and c++]
r gcc --version
r cmake --version
r nm -C libfoo.a | grep init
r objdump -d a.out | head -50
r ldd build/app
r readelf -h build/app
r size build/app
r pkg-config --cflags --libs gtk+-3.0
r find . -name '*.h' | xargs grep -n MAX_SIZE
r grep -rn "#include" src | sort -u
c make -n
r addr2line -e app 0x4005d0
c make
c make -j8
c make clean
c make test 2>&1 | tail
c make -C build install DESTDIR=/tmp/out
c cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug
c cmake --build build -j
c ctest --test-dir build --output-on-failure
c gcc -Wall -O2 -o hello hello.c
c g++ -std=c++20 main.cpp -o main && ./main
c clang-format -i src/foo.cpp
c clang-tidy src/*.cpp
c ninja -C build
c meson setup build
c ./configure && make
c autoreconf -fi
c ar rcs libx.a x.o
c strip build/app
c valgrind ./build/tests
c gdb -batch -ex bt ./app core
c strace -f ./app

[java and jvm]
r java -version
r mvn -v
r javac -version
r cat pom.xml | grep -n version
r find . -name '*.java' | wc -l
r jar tf app.jar
r jps -l
c mvn test
c mvn -q clean package -DskipTests
c mvn dependency:tree
c ./mvnw spring-boot:run
c gradle build
c ./gradlew test --info
c javac -d out src/Main.java
c java -jar build/app.jar
c java -cp out Main
c sbt compile
c kotlinc hello.kt -include-runtime -d hello.jar

[ruby and php]
r ruby --version
r gem list
r bundle list
r bundle outdated
r php -v
r php -m
r composer show
r composer --version
r grep -rn "belongs_to" app/models
c bundle install
c bundle exec rspec
c bundle exec rails db:migrate
c rails server
c rake test
c rubocop -a
c gem install bundler
c composer install
c php artisan migrate
c php artisan serve
c vendor/bin/phpunit
c ruby script.rb

[containers and clouds]
r docker ps
r docker ps -a --format '{{.Names}}'
r docker images
r docker logs -f web --tail 100
r docker inspect web
r docker version
r docker info
r docker stats --no-stream
r docker compose ps
r docker compose logs web
r docker compose config
r docker network ls
r docker volume ls
r docker history app:latest
r podman ps
r kubectl get pods
r kubectl get pods -n prod -o wide
r kubectl -n prod get svc
r kubectl describe pod web-1
r kubectl logs deploy/web -f --tail=50
r kubectl config current-context
r kubectl config get-contexts
r kubectl version --client
r kubectl top nodes
r kubectl explain deployment.spec
r helm list -A
r helm status web
r helm template ./chart
r helm get values web
r terraform version
r terraform validate
r terraform fmt -check
r terraform show
r terraform output
r terraform state list
r aws sts get-caller-identity
r aws s3 ls s3://bucket/
r aws ec2 describe-instances --region eu-west-1
r aws --profile dev lambda list-functions
r gcloud config list
r gcloud compute instances list
r az account show
r az group list -o table
r skopeo inspect docker://alpine
c docker build -t app:latest .
c docker compose up -d
c docker compose down
c docker compose build --no-cache
c docker run --rm -it -v "$(pwd)":/app -w /app node:20 npm test
c docker run -d -p 8080:80 nginx
c docker exec -it web bash
c docker exec web ls /app
c docker pull postgres:16
c docker stop web
c docker tag app registry.example.com/app
c docker push registry.example.com/app
c docker cp web:/app/log.txt .
c kubectl apply -f k8s/
r kubectl rollout status deploy/web
c kubectl rollout restart deploy/web
c kubectl scale deploy/web --replicas=3
c kubectl exec -it web-1 -- sh
c kubectl port-forward svc/web 8080:80
c kubectl config use-context dev
c helm upgrade --install web ./chart
c helm repo update
c terraform init
c terraform plan -out=plan.tfplan
c terraform apply
c terraform fmt
c aws s3 cp file.txt s3://bucket/
c aws s3 sync dist s3://bucket
c gcloud run deploy web --source .
c ansible-playbook site.yml --check
c pulumi preview

[databases]
r cat schema.sql
r grep -in "create table" db/*.sql
r pg_isready -h localhost
r psql --version
r ls migrations | tail -5
r mysql --version
c psql -d app -c 'SELECT count(*) FROM users'
c psql -f schema.sql app
c psql app < dump.sql
c pg_dump app > dump.sql
c sqlite3 app.db '.tables'
c sqlite3 app.db 'select * from users limit 5'
c mysql -u root app -e 'show tables'
c mysqldump app > app.sql
c redis-cli ping
c redis-cli get session:1
c createdb test
c flyway migrate
c mongosh --eval 'db.stats()'

[servers and networks]
r systemctl status nginx
r systemctl list-units --failed
r systemctl is-active ssh
r journalctl -u nginx -n 50 --no-pager
r journalctl -xe | tail -100
r dmesg | tail
r ip addr
r ip -br a
r ip route show
r ping -c 3 example.com
r dig +short example.com
r nslookup example.com
r host example.com
r netstat -tulpn
r top -bn1 | head -20
r vmstat 1 3
r iostat
r pgrep -fl node
r pidof nginx
r crontab -l
r last -5
r w
r hostname
r cat /etc/os-release
r cat /proc/cpuinfo | grep "model name" | uniq
r apt list --installed
r apt-cache policy nginx
r dpkg -l | grep python
r dpkg -L coreutils
r rpm -qa
r brew list
r brew info jq
r nginx -t
r openssl version
r openssl x509 -in cert.pem -noout -text
c ssh user@example.com uptime
c scp file.txt user@example.com:/tmp/
c rsync -avz -e ssh dist/ user@example.com:/srv/app
c apt-get update
c apt install -y jq
c brew install jq
c openssl genrsa -out key.pem 2048
c ssh-keygen -t ed25519 -f ./id -N ''
r crontab --help
c nc -zv localhost 5432

[documents and web sites]
r cat docs/index.md | wc -w
r pandoc --version
r grep -rn "](http" docs | cut -d: -f1 | sort -u
r identify logo.png
r ffprobe video.mp4
r pdftotext -l 1 paper.pdf -
r exiftool photo.jpg
r aspell --version
c pandoc README.md -o README.pdf
c mkdocs build
c mkdocs serve
c hugo server -D
c jekyll build
c sphinx-build -b html docs docs/_build
c convert in.png -resize 50% out.png
c ffmpeg -i in.mp4 -c copy out.mkv
c latexmk -pdf paper.tex
c make -C docs html
c npm run docs:build
c vale docs

[data work]
r head -1 data.csv | tr ',' '\n'
r wc -l data/*.csv
r cut -d, -f2 data.csv | sort | uniq -c | sort -nr | head
r zcat data.csv.gz | head -5
r jq -c '.[] | select(.x > 1)' data.json
r sort -t, -k2 -n data.csv | head
r nvidia-smi
r cat results.json | jq '.accuracy'
r find data -name '*.parquet' -size +100M
r tail -f train.log
r column -s, -t data.csv | head
r shuf -n 5 data.txt
r join a.txt b.txt
r yq '.services' docker-compose.yml
c python train.py --epochs 10
c python -m torch.distributed.run train.py
c dvc pull
c jupyter lab --no-browser
c Rscript analysis.R
c CUDA_VISIBLE_DEVICES=0 python train.py > train.log 2>&1 &
c csvcut -c 1,2 data.csv
c duckdb my.db 'select 1'
c kaggle datasets download x/y
"""


def everyday() -> list[tuple[str, str, str]]:
    """Rows of (kind of project, "reading" or "changing", command)."""
    rows: list[tuple[str, str, str]] = []
    kind = ""
    for line in _TABLE.strip().splitlines():
        if line.startswith("[") and line.endswith("]") and not line.startswith("[ "):
            kind = line[1:-1]
        elif line:
            command = line[2:].replace("\\n", "\n") if "<<" in line else line[2:]
            rows.append((kind, {"r": "reading", "c": "changing"}[line[0]], command))
    return rows
