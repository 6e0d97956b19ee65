package clitest

import (
	"bytes"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/testkit/c2patest"
	"cutroom/shared/testkit/servertest"
)

func start(t *testing.T) *servertest.Server {
	t.Helper()
	server, err := servertest.Program(program).Start(bounded(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Kill()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", server.Log()[max(0, len(server.Log())-4000):])
		}
	})
	return server
}

func TestCommandsWork(t *testing.T) {
	t.Parallel()
	server := start(t)
	here := func(t *testing.T) shell { return at(t, server.URL(), server.InferenceURL()) }
	for name, test := range map[string]func(*testing.T, shell){
		"image": images, "videos": videos, "batch": batch, "jobs": jobs, "files": files, "account": account, "chat": chat,
		"terminal": bars, "login": login, "doctor": doctor, "agents": agents, "agents' folder": agentsFolder,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, here(t))
		})
	}
}

func images(t *testing.T, s shell) {
	s.save("look.png", picture(t))
	if path := s.works("image", "look.png", "-p", "winter", "--resolution", "480p", "--seed", "7", "--ref",
		"look.png"); path != "look-winter.png" {
		t.Errorf("the reported path is %q", path)
	}
	first := s.read("look-winter.png")
	if _, err := png.Decode(bytes.NewReader(first)); err != nil {
		t.Error(err)
	}
	// The notice lists the parts of the prompt that the engine followed.
	if got := s.run("image", "look.png", "-p", "snow, and add a hat", "--resolution", "480p", "-o", "hat.png"); got.code != 0 ||
		strings.TrimSpace(got.stdout) != "hat.png" || !strings.Contains(got.stderr, "the preview engine followed: winter\n") ||
		!strings.Contains(got.stderr, "“add a hat” changed nothing. ") {
		t.Errorf("a partly followed prompt: %+v", got)
	}
	// An existing file is replaced only with --force.
	if got := s.run("image", "look.png", "-p", "winter"); got.code != 1 || !strings.Contains(got.stderr, "--force") ||
		strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("an existing result: %+v", got)
	}
	documents := s.documents("edit", "look.png", "-p", "winter", "--resolution", "480p", "--seed", "7", "--ref",
		"look.png", "-o", "again.png")
	if len(documents) != 1 || documents[0]["model"] != "gen-image-2" || documents[0]["seed"] != 7.0 ||
		documents[0]["output"] != "again.png" {
		t.Errorf("printed %v", documents)
	}
	if !bytes.Equal(s.read("again.png"), first) {
		t.Error("the same request with the same seed gave another result")
	}
	if out := s.works("jobs", "download", documents[0]["job_id"].(string), "-o",
		"-"); out != strings.TrimSuffix(string(first), "\n") {
		t.Errorf("stdout has %d bytes, and the file %d", len(out), len(first))
	}
	if left, _ := filepath.Glob(filepath.Join(s.folder, "*.part")); left != nil {
		t.Errorf("the leftovers are %v", left)
	}
}

func videos(t *testing.T, s shell) {
	s.save("clips/day.mp4", clip(t, "0.4"))
	if path := s.works("edit", "clips/day.mp4", "-m", "gen-2.1", "-p", "film noir",
		"--no-enhance"); path != "clips/day-film-noir.mp4" {
		t.Errorf("the reported path is %q", path)
	}
	if video := s.read("clips/day-film-noir.mp4"); !bytes.Contains(video[:16], []byte("ftyp")) {
		t.Errorf("the result begins with %q", video[:16])
	}
	made := s.run("t2v", "a storm at sea", "--resolution", "480p", "--orientation", "portrait", "--detach")
	if made.code != 0 || !strings.HasPrefix(made.stdout, "job_") {
		t.Fatalf("%+v", made)
	}
	s.works("jobs", "cancel", strings.TrimSpace(made.stdout))
}

// batch edits a folder that also contains a broken picture and a text file.
func batch(t *testing.T, s shell) {
	s.save("in/a.png", picture(t))
	s.save("in/a.jpg", picture(t))
	s.save("in/bad.png", []byte("no picture"))
	s.save("in/notes.txt", []byte("not media"))
	if got := s.run("edit", "in", "-p", "anime", "--resolution", "480p"); got.code != 2 ||
		!strings.Contains(got.stderr, "-o") {
		t.Errorf("a folder without -o: %+v", got)
	}
	if got := s.run("edit", "in", "-p", "anime", "--resolution", "480p", "-o", "in"); got.code != 2 {
		t.Errorf("results among the inputs: %+v", got)
	}
	got := s.run("edit", "in", "-p", "anime", "--resolution", "480p", "--jobs", "2", "-o", "out")
	if got.code != 1 || !strings.Contains(got.stderr, "1 of 3 failed") {
		t.Errorf("%+v", got)
	}
	rows := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if len(rows) != 4 || !strings.HasPrefix(rows[0], "INPUT") || !strings.Contains(rows[3], "failed") {
		t.Errorf("the summary is\n%s", got.stdout)
	}
	for _, name := range []string{"out/a.gen-image-2.png", "out/a.png.gen-image-2.png"} {
		if _, err := png.Decode(bytes.NewReader(s.read(name))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	again := s.run("edit", "in", "-p", "anime", "--resolution", "480p", "-o", "out")
	if again.code != 1 || strings.Count(again.stdout, "skipped") != 2 {
		t.Errorf("a repeated batch: %+v", again)
	}
	if documents := s.documents("edit", "in/a.png", "in/a.jpg", "-p", "anime", "--resolution", "480p", "-o",
		"out"); len(documents) != 2 || documents[0]["status"] != "skipped" {
		t.Errorf("printed %v", documents)
	}
}

func jobs(t *testing.T, s shell) {
	s.save("look.png", picture(t))
	s.save("long.mp4", clip(t, "60"))
	// Cancel the long job while it is waiting or running.
	long := s.works("edit", "long.mp4", "-m", "gen-vton-3.5", "--detach")
	if cancelled := s.documents("jobs", "cancel", long)[0]; cancelled["status"] != "failed" ||
		cancelled["error"].(map[string]any)["code"] != "cancelled" {
		t.Errorf("the cancelled job is %v", cancelled)
	}
	if got := s.run("jobs", "watch", long); got.code != 6 || !strings.Contains(got.stderr, long+" was cancelled\n") {
		t.Errorf("watching a job that was cancelled: %+v", got)
	}
	if got := s.run("jobs", "download", long, "-o", "x.mp4"); got.code != 1 || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("the result of a job that failed: %+v", got)
	}

	id := s.works("image", "look.png", "-p", "winter", "--resolution", "480p", "--detach")
	if got := s.run("jobs", "watch", id, "-o", "out.png"); got.code != 0 || got.stdout != "out.png\n" {
		t.Errorf("%+v", got)
	}
	if states := s.documents("jobs", "watch", id); len(states) != 1 || states[0]["status"] != "completed" {
		t.Errorf("watching a completed job printed %v", states)
	}
	got := s.run("image", "look.png", "-p", "add a hat", "--resolution", "480p", "-o", "hat.png")
	if got.code != 9 || got.stdout != "hat.png\n" || !strings.Contains(got.stderr, "the result is unchanged") {
		t.Errorf("a prompt of which nothing is followed: %+v", got)
	}
	got = s.run("image", "look.png", "-p", "blur the background", "--resolution", "480p", "-o", "blurred.png")
	if got.code != 9 || !strings.Contains(got.stderr, "the result is unchanged: No person was found") {
		t.Errorf("a picture without a person: %+v", got)
	}
	s.works("jobs", "download", id, "-o", "same.png")
	if !bytes.Equal(s.read("out.png"), s.read("same.png")) {
		t.Error("two downloads differ")
	}
	for path, kind := range map[string]string{"same.jpg": "image/jpeg", "same.webp": "image/webp", "same.gif": "image/gif"} {
		s.works("jobs", "download", id, "-o", path)
		if got := http.DetectContentType(s.read(path)); got != kind {
			t.Errorf("%s is %s", path, got)
		}
	}
	for _, path := range []string{"x.bmp", "x.mp4"} {
		got := s.run("image", "look.png", "-p", "winter", "-o", path)
		if got.code != 2 || !strings.Contains(got.stderr, ".png, .jpg, .webp or .gif") || strings.Contains(got.stderr, "job_") {
			t.Errorf("an image as %s: %+v", path, got)
		}
	}
	if shown := s.works("jobs", "get", id); !strings.Contains(shown, id) || !strings.Contains(shown, "completed") {
		t.Errorf("jobs get printed %s", shown)
	}
	if cancelled := s.run("jobs", "cancel", id); cancelled.code != 1 {
		t.Errorf("cancelling a completed job: %+v", cancelled)
	}
	if list := s.documents("jobs", "--status", "failed", "-m", "gen-vton-3.5"); len(list) != 1 ||
		list[0]["job_id"] != long {
		t.Errorf("the failed jobs are %v", list)
	}
	if tries := s.works("jobs", "deliveries", id); !strings.HasPrefix(tries, "ATTEMPT") || strings.Contains(tries, "\n") {
		t.Errorf("the webhook's log of a job without one is:\n%s", tries)
	}
	if list := s.documents("jobs", "--status", "cancelled", "-m", "gen-vton-3.5"); len(list) != 1 ||
		list[0]["job_id"] != long {
		t.Errorf("the cancelled jobs are %v", list)
	}
	remembered(t, s, id)
	if table := s.works("jobs", "--limit", "1000"); !strings.Contains(table, id) || !strings.Contains(table, long) {
		t.Errorf("the jobs are\n%s", table)
	}
}

// remembered checks that a past job can be found, shown, downloaded and shared, and that another can be deleted.
func remembered(t *testing.T, s shell, id string) {
	t.Helper()
	s.save("dune at dawn.png", picture(t))
	gone := s.works("image", "dune at dawn.png", "-p", "comic book", "--resolution", "480p", "--detach")
	s.works("jobs", "watch", gone)
	table := s.works("jobs", "--search", "DAWN comic")
	for _, shown := range []string{"PROMPT", gone, "completed", "dune at dawn.png", "comic book"} {
		if !strings.Contains(table, shown) {
			t.Errorf("the table lacks %q:\n%s", shown, table)
		}
	}
	if strings.Contains(table, id) {
		t.Errorf("the search finds another job:\n%s", table)
	}
	shown := s.works("jobs", "show", gone)
	for _, word := range []string{"comic book", "dune at dawn.png (image/png", "480p", "kept until", "preview"} {
		if !strings.Contains(shown, word) {
			t.Errorf("jobs show lacks %q:\n%s", word, shown)
		}
	}
	if path := s.works("jobs", "download", gone); path != "dune-at-dawn-comic-book.png" {
		t.Errorf("the reported path is %q", path)
	}
	answer, err := http.Get(s.works("jobs", "share", gone, "--for", "1h"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if content, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != 200 ||
		!bytes.Equal(content, s.read("dune-at-dawn-comic-book.png")) {
		t.Errorf("the link leads to %d with %d bytes, %v", answer.StatusCode, len(content), err)
	}
	s.works("jobs", "rm", gone)
	if got := s.run("jobs", "show", gone); got.code != 4 {
		t.Errorf("a deleted job: %+v", got)
	}
}

func files(t *testing.T, s shell) {
	s.save("look.png", picture(t))
	ids := strings.Fields(s.works("files", "put", "look.png", "look.png", "--ttl", "3600"))
	if len(ids) != 2 {
		t.Fatalf("two files gave %q", ids)
	}
	if file := s.documents("files", "get", ids[0])[0]; file["filename"] != "look.png" ||
		file["size_bytes"] != float64(len(picture(t))) {
		t.Errorf("the reference is %v", file)
	}
	// An input may be a stored file. The result is then named after it.
	if path := s.works("edit", ids[0], "-m", "gen-image-2", "-p", "winter", "--resolution", "480p", "-o",
		"stored.png"); path != "stored.png" {
		t.Errorf("the reported path is %q", path)
	}
	// For every resource, ls is the same as list.
	if listed := s.works("files", "list"); !strings.Contains(listed, ids[0]) {
		t.Errorf("files list printed\n%s", listed)
	}
	s.works("jobs", "ls")
	if table := s.works("files"); !strings.Contains(table, ids[0]) || !strings.Contains(table, "image/png") {
		t.Errorf("the files are\n%s", table)
	}
	// The newest file comes first. There may be other files.
	at := map[any]int{}
	for i, file := range s.documents("files", "ls") {
		at[file["id"]] = i + 1
	}
	if at[ids[1]] == 0 || at[ids[0]] <= at[ids[1]] {
		t.Errorf("the files are at %v", at)
	}
	if path := s.works("files", "get", ids[0], "-o", "back.png"); path != "back.png" ||
		!bytes.Equal(s.read("back.png"), picture(t)) {
		t.Errorf("the reported path is %q, or the content differs from the upload", path)
	}
	if out := s.works("files", "get", ids[0], "-o", "-"); out+"\n" != string(picture(t)) && out != string(picture(t)) {
		t.Errorf("stdout has %d bytes", len(out))
	}
	s.works(append([]string{"files", "rm"}, ids...)...)
	if got := s.run("files", "get", ids[0]); got.code != 4 {
		t.Errorf("a deleted file: %+v", got)
	}
}

func account(t *testing.T, s shell) {
	if quota := s.documents("quota")[0]; quota["limit"] != 5.0 || quota["active"] != 0.0 {
		t.Errorf("the quota is %v", quota)
	}
	made := s.run("token", "--expires", "120", "-m", "gen-2.5")
	if made.code != 0 || !strings.HasPrefix(made.stdout, "ek_") || strings.Count(made.stdout, "\n") != 1 {
		t.Fatalf("%+v", made)
	}
	// A client token has fewer permissions than a key.
	if got := s.with("CUTROOM_API_KEY=" + strings.TrimSpace(made.stdout)).run("token"); got.code != 3 {
		t.Errorf("a token from a token: %+v", got)
	}
	if secret := s.works("webhook-secret"); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("the secret is %q", secret)
	}
	names := map[any]any{}
	for _, model := range s.documents("models") {
		names[model["id"]] = model["service"]
		if model["service"] == "media" && (model["kind"] == nil || model["title"] == nil || model["examples"] == nil) {
			t.Errorf("a menu would show only the id of %v", model)
		}
	}
	if names["gen-2.5"] != "media" || names["cutroom-echo"] != "inference" {
		t.Errorf("the models are %v", names)
	}
	if table := s.works("models"); !strings.Contains(table, "gen-latest") ||
		!strings.Contains(table, "Try on a garment, such as “wearing this jacket”") {
		t.Errorf("the models are\n%s", table)
	}
}

func chat(t *testing.T, s shell) {
	if said := s.works("chat", "hello", "there"); !strings.Contains(said, "“hello there”") {
		t.Errorf("the model replied %q", said)
	}
	if piped := s.feed("from a pipe\n", "chat", "-m", "cutroom-echo"); piped.code != 0 ||
		!strings.Contains(piped.stdout, "“from a pipe”") {
		t.Errorf("%+v", piped)
	}
	if answer := s.documents("chat", "hello")[0]; answer["object"] != "chat.completion" {
		t.Errorf("the response is %v", answer)
	}
	if got := s.run("chat", "hello", "-m", "nobody", "--json"); got.code != 4 ||
		!strings.Contains(got.stderr, `"code":"model_not_found"`) {
		t.Errorf("an unknown model: %+v", got)
	}
	used := s.documents("usage")
	ofEcho := func(row map[string]any) bool { return row["model"] == "cutroom-echo" && row["requests"] != 0.0 }
	if !slices.ContainsFunc(used, ofEcho) {
		t.Errorf("the usage is %v", used)
	}
}

func bars(t *testing.T, s shell) {
	s.save("look.png", picture(t))
	opened := s.open("image", "look.png", "-p", "winter", "--resolution", "480p")
	if code := opened.wait(); code != 0 {
		t.Fatalf("exit code %d: %q", code, opened.screen)
	}
	for _, shown := range []string{"upload", "edit", "100%", "download", "\x1b[", "look-winter.png\r\n"} {
		if !strings.Contains(opened.screen.String(), shown) {
			t.Errorf("the screen never showed %q: %q", shown, opened.screen)
		}
	}
	quiet := s.open("files", "put", "look.png", "--json")
	if code := quiet.wait(); code != 0 || strings.Contains(quiet.screen.String(), "\x1b") {
		t.Errorf("with --json: exit code %d, %q", code, quiet.screen)
	}
}

// login checks that a valid key is stored in a profile that only its owner can read.
func login(t *testing.T, s shell) {
	target, gateway := s.setting("CUTROOM_URL"), s.setting("CUTROOM_INFERENCE_URL")
	user := newShell(t)
	kept := filepath.Join(user.folder, ".config", "cutroom", "config.yaml")
	args := []string{"login", "--profile", "work", "--url", target, "--inference-url", gateway}
	if got := user.feed("ck_not_this_one\n", args...); got.code != 3 {
		t.Errorf("an invalid key: %+v", got)
	}
	if _, err := os.Stat(kept); !os.IsNotExist(err) {
		t.Error("the invalid key was stored")
	}
	if got := user.feed("", args...); got.code != 2 {
		t.Errorf("no key: %+v", got)
	}
	typed := user.open(args...)
	typed.waitFor("Key: ", 1)
	typed.press(servertest.Key + "\r")
	if code := typed.wait(); code != 0 || strings.Contains(typed.screen.String(), servertest.Key) {
		t.Errorf("exit code %d: %q", code, typed.screen)
	}
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	user.works("quota", "--profile", "work")
	user = user.with("CUTROOM_PROFILE=work")
	user.works("quota")
	if got := user.works("profiles"); !strings.Contains(got, target) || strings.Contains(got, servertest.Key) {
		t.Errorf("the profiles are %s", got)
	}
	// The key is only ever sent to the profile's server.
	if got := user.with("CUTROOM_URL=http://media.example.com").run("quota"); got.code != 3 ||
		!strings.Contains(got.stderr, "there is no key") {
		t.Errorf("another server: %+v", got)
	}
	user.works("logout")
	if got := user.run("quota"); got.code != 2 {
		t.Errorf("a profile after logout: %+v", got)
	}
}

func doctor(t *testing.T, s shell) {
	s = s.with("CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_INFERENCE_ADDR=127.0.0.1:0", "CUTROOM_C2PA=on", "CUTROOM_C2PA_LIBRARY="+c2patest.Path(t))
	states := map[any]any{}
	for _, found := range s.documents("doctor") {
		states[found["check"]] = found["state"]
	}
	for check, want := range map[string]string{
		"ffmpeg": "ok", "signing": "ok", "data": "ok", "address": "ok", "engine": "ok", "upstream": "ok", "server": "ok", "key": "ok",
	} {
		if states[check] != want {
			t.Errorf("%s is %v, want %s", check, states[check], want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.folder, ".cutroom", "c2pa.pem")); err == nil {
		t.Error("doctor kept the identity of its trial")
	}
	s = s.with("PATH="+t.TempDir(), "CUTROOM_ENGINE=http://127.0.0.1:1", "CUTROOM_C2PA=auto", "CUTROOM_C2PA_LIBRARY=/none",
		"CUTROOM_ADDR="+strings.TrimPrefix(s.setting("CUTROOM_INFERENCE_URL"), "http://"), "CUTROOM_API_KEY=ck_not_this_one")
	got := s.run("doctor")
	if got.code != 1 || !strings.Contains(got.stderr, "4 of") {
		t.Errorf("%+v", got)
	}
	for _, line := range []string{"fail  ffmpeg", "fail  signing", "fail  engine", "a Cutroom server listens at", "fail  key", "cutroom login"} {
		if !strings.Contains(got.stdout, line) {
			t.Errorf("the output lacks %q:\n%s", line, got.stdout)
		}
	}
}

func (s shell) setting(name string) string {
	value := ""
	for _, setting := range s.settings {
		if found, is := strings.CutPrefix(setting, name+"="); is {
			value = found
		}
	}
	return value
}
