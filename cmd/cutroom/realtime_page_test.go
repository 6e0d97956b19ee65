package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/testkit/lossytest"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

// pixels contains page functions that measure a canvas: the mean of each channel, and the mean
// difference between a pixel's strongest and weakest channels, which is 0 for gray.
const pixels = `
const small = new OffscreenCanvas(64, 36).getContext("2d", { willReadFrequently: true });
const shownIn = id => document.getElementById(id === "edited" && document.body.dataset.transport === "webrtc" ? "video" : id);
function sample(id) {
  small.drawImage(shownIn(id), 0, 0, 64, 36);
  const { data } = small.getImageData(0, 0, 64, 36);
  return Array.from({ length: 64 * 36 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)]);
}
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
const means = id => [0, 1, 2].map(channel => mean(sample(id).map(pixel => pixel[channel])));
// bars returns the pattern's color strip; difference is the largest distance between two strips.
const whole = new OffscreenCanvas(640, 360).getContext("2d", { willReadFrequently: true });
function bars(id) {
  whole.drawImage(shownIn(id), 0, 0, 640, 360);
  return Array.from({ length: 9 }, (_, i) => [...whole.getImageData(44 * i + 22, 352, 1, 1).data.slice(0, 3)]).flat();
}
function difference(one, other) {
  const others = bars(other);
  return Math.max(...bars(one).map((value, i) => Math.abs(value - others[i])));
}
const colorfulness = id => mean(sample(id).map(pixel => Math.max(...pixel) - Math.min(...pixel)));
`

// Prompts with visible effects: one removes color, the other adds a lot of it.
const (
	grayLook, isGray         = "film noir", `colorfulness("edited") < 12`
	colorfulLook, isColorful = "fire", `colorfulness("edited") > 90`
)

func realtimePage(t *testing.T, server *servertest.Server, key string) *tab {
	t.Helper()
	page := openTab(t, "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
	page.open(server.URL() + "/realtime")
	page.resize(1280, 860, "light")
	// Drawing a frame takes milliseconds for both the browser and the server, so draw fewer frames.
	page.do("const everyFrame = requestAnimationFrame; requestAnimationFrame = draw => setTimeout(() => everyFrame(draw), 50)")
	page.do(pixels)
	page.do(fmt.Sprintf(`document.getElementById("key").value = %q`, key))
	return page
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.do(fmt.Sprintf("document.querySelector(%q).click()", selector))
}

func (p *tab) text(id string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf("document.getElementById(%q).textContent", id))
}

func (p *tab) ask(prompt string) {
	p.t.Helper()
	p.do(`document.getElementById("prompt").focus(); document.getElementById("prompt").value = ""`)
	p.must("Input.insertText", map[string]any{"text": prompt}, nil)
	p.press("Enter", 13)
}

const (
	live         = `document.body.dataset.state === "open"`
	imageInUse   = `document.getElementById("image-state").textContent.startsWith("In use: red.png")`
	disconnected = `document.body.dataset.state === "closed"`
)

func sessionsOf(t *testing.T, server *servertest.Server) string {
	t.Helper()
	answer, err := server.Client().Get(bounded(t), "/v1/realtime/quota")
	if err != nil {
		t.Fatal(err)
	}
	return string(answer.Body)
}

func (p *tab) morePictures() {
	p.t.Helper()
	p.await("more pictures are shown", fmt.Sprintf("pictures > %d", eval[int](p, "pictures")+4))
}

// onScreens takes screenshots with light and dark color schemes on large and small screens. The
// page must not be wider than the screen.
func (p *tab) onScreens(name string) {
	p.t.Helper()
	for _, screen := range []struct {
		name, scheme  string
		width, height int
	}{{"desktop", "light", 1280, 860}, {"dark", "dark", 1280, 860}, {"phone", "light", 390, 844},
		{"phone-dark", "dark", 390, 844}} {
		p.resize(screen.width, screen.height, screen.scheme)
		if beyond := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); beyond > 0 {
			p.t.Errorf("%s: the page is %d pixels wider than the screen", screen.name, beyond)
		}
		p.screenshot(name + "-" + screen.name + ".png")
	}
	p.resize(1280, 860, "light")
}

// The page applies the latest prompt and image to the test pattern and the camera.
func TestRealtimePageEdits(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	page := realtimePage(t, server, servertest.Key)
	page.await("the test pattern is drawn", `colorfulness("original") > 30`)
	page.click("#connect")
	page.await("the session is live", live)
	page.await("edited pictures arrive", `document.getElementById("empty").hidden && `+
		`+document.getElementById("rate").textContent > 0 && +document.getElementById("latency").textContent > 0`)
	page.await("the quota is shown", `document.getElementById("quota").textContent === "1 of 5"`)
	page.ask(grayLook)
	page.await("the prompt shows in the picture", isGray)
	if color := eval[float64](page, `colorfulness("original")`); color < 30 {
		t.Errorf("the original must not be edited, but has a colorfulness of %g", color)
	}
	if applied := page.text("prompt-state"); applied != "Applied: "+grayLook {
		t.Errorf("the page shows %q for the prompt", applied)
	}
	page.do(fmt.Sprintf(`[...document.querySelectorAll("#examples button")].find(chip => chip.textContent === %q).click()`,
		colorfulLook))
	page.await("an example shows in the picture", isColorful)
	page.ask("a watercolor painting")
	page.await("the prompt is applied",
		`document.getElementById("prompt-state").textContent === "Applied: watercolor"`)
	// The page must not report an unsupported prompt as applied.
	page.ask("add a hat")
	page.await("the page says that nothing was changed", `document.getElementById("prompt-state").textContent.startsWith(`+
		`"Nothing was changed: the preview engine does not follow “add a hat”") && !document.getElementById("prompt-state").classList.contains("good")`)
	page.do(`document.getElementById("prompt").value = "snow, and add a hat"; document.getElementById("prompt").dispatchEvent(new Event("input"))`)
	page.await("the page says beforehand what will happen", `document.getElementById("prompt-state").textContent.startsWith(`+
		`"Enter applies: winter. “add a hat” will change nothing")`)
	page.ask("a watercolor painting")
	page.await("the prompt is applied again",
		`document.getElementById("prompt-state").textContent === "Applied: watercolor"`)
	page.morePictures()
	page.onScreens("pattern")

	page.click("input[value=camera]")
	// The browser's fake camera shows a green picture.
	page.await("the camera is shown", `means("original")[1] > means("original")[0] + 60`)
	page.ask(grayLook)
	page.await("the camera's picture is edited", isGray)
	page.ask(colorfulLook)
	page.await("the camera's picture follows the prompt", isColorful)
	page.screenshot("camera.png")

	page.click("#connect")
	page.await("the session is closed", disconnected)
	eventually(t, "the session is freed", func() bool {
		return sessionsOf(t,
			server) == `{"limit":5,"active":0,"remaining":5}`
	})
	if text := page.text("notice"); text != "" {
		t.Errorf("the page reports an error for a session that the user ended: %q", text)
	}
}

const (
	byVideo  = `document.body.dataset.transport === "webrtc"`
	byJPEG   = `document.body.dataset.transport === "jpeg"`
	measured = `+document.getElementById("latency").textContent > 0`
)

// says returns an expression that is true if the transport line contains the text.
func says(text string) string {
	return fmt.Sprintf(`document.getElementById("how").textContent.includes(%q)`, text)
}

// If the server offers WebRTC, frames arrive as video over UDP or TCP if only that protocol gets through, and as
// JPEGs if neither does. If both get through, the browser chooses. On a busy machine it may choose TCP.
func TestRealtimePageUsesWebRTC(t *testing.T) {
	t.Parallel()
	address, err := programtest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	// The browser connects to the relay, which listens on another address of this machine.
	server := start(t, t.TempDir(), "CUTROOM_RTC_ADDR="+address, "CUTROOM_RTC_PUBLIC=127.0.0.2")
	relay, err := lossytest.NewRelay("127.0.0.2"+strings.TrimPrefix(address, "127.0.0.1"), address, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	relay.Cut(true)
	page := realtimePage(t, server, servertest.Key)
	page.click("#connect")
	page.await("there is video by UDP", byVideo+" && "+measured+" && "+says("Video over WebRTC by UDP."))
	page.ask(grayLook)
	page.await("the prompt shows in the video", isGray)
	page.ask("")
	page.await("the video is as it was", `colorfulness("edited") > 30`)
	page.await("its colors are those of the original", `difference("original", "edited") < 16`)
	page.onScreens("video")

	// The timestamp in the picture is not always legible, but the video's own timestamps are.
	page.ask("pencil sketch")
	page.await("the look is applied", `document.getElementById("prompt-state").textContent.startsWith("Applied: pencil")`)
	page.morePictures()
	page.await("the latency is still measured", "frames.length > 1 && frames.every(frame => !isNaN(frame.latency))")
	page.screenshot("sketch.png")

	blocked := lossytest.Faults{Block: true}
	relay.Cut(false)
	relay.Set(blocked, blocked)
	page.await("video goes by TCP", byVideo+" && "+says("Video over WebRTC by TCP."))
	page.morePictures()
	relay.Cut(true)
	page.await("JPEGs take over", byJPEG)
	page.morePictures()
	page.await("their latency is shown", measured)
	page.ask(colorfulLook)
	page.await("the prompt shows in the JPEGs", isColorful)
	page.await("the page says why", says("JPEGs over a WebSocket, as WebRTC has no connection to the server."))

	page.click("#connect")
	page.await("the session is closed", disconnected)
	eventually(t, "the session is freed", func() bool { return strings.Contains(sessionsOf(t, server), `"active":0`) })

	// Simulate a browser without WebRTC.
	page.do("window.RTCPeerConnection = undefined")
	page.click("#connect")
	page.await("there are JPEGs", byJPEG+" && "+says("as this browser has no WebRTC."))
}

func TestRealtimePageUsesReferenceImage(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	page := realtimePage(t, server, servertest.Key)
	page.click("#connect")
	page.await("the session is live", live)
	page.do(`(async () => {
		const canvas = new OffscreenCanvas(64, 64), at = canvas.getContext("2d");
		at.fillStyle = "#c01010";
		at.fillRect(0, 0, 64, 64);
		at.fillStyle = "#601018";
		at.fillRect(0, 0, 64, 32);
		const files = new DataTransfer();
		files.items.add(new File([await canvas.convertToBlob()], "red.png", { type: "image/png" }));
		const input = document.getElementById("image");
		input.files = files.files;
		input.dispatchEvent(new Event("change"));
	})()`)
	page.await("the image is in use", imageInUse)
	page.await("its colors are carried over", `means("edited")[0] > means("edited")[2] + 40`)
	page.screenshot("image.png")
	page.ask(grayLook)
	page.await("the prompt is applied", fmt.Sprintf(`document.getElementById("prompt-state").textContent === %q`,
		"Applied: "+grayLook+", colors of the reference image"))
	page.click("#connect")
	page.await("the session is closed", disconnected)
	for id, want := range map[string]string{"image-state": "In use once you are connected.",
		"prompt-state": "Applied once you are connected."} {
		if text := page.text(id); text != want {
			t.Errorf("without a session %s shows %q, want %q", id, text, want)
		}
	}
	page.click("#connect")
	page.await("the image is in use again", imageInUse)
	page.click("#clear-image")
	page.await("the image is taken away", `document.getElementById("image-state").textContent === "No image."`)
	page.await("its colors are gone", isGray)
}

// If all of the account's sessions are open, the page also shows its position in the queue.
func TestRealtimePageExplainsErrors(t *testing.T) {
	t.Parallel()
	data, tiers := t.TempDir(), filepath.Join(t.TempDir(), "tiers.yaml")
	if err := os.WriteFile(tiers, []byte("dev: {realtime_sessions: 1}\ndefault: {realtime_sessions: 1}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	server := start(t, data, "CUTROOM_TIERS="+tiers)
	page := realtimePage(t, server, "")
	complaint := func(part string) {
		t.Helper()
		page.await("the page complains: "+part,
			fmt.Sprintf(`%s && document.getElementById("notice").textContent.includes(%q)`, disconnected, part))
	}
	page.click("#connect")
	complaint("Paste an API key first")
	for key, part := range map[string]string{
		"ck_unknown-to-the-server": "key is unknown",
		"ek_a-token":               "This is a client token",
	} {
		page.do(fmt.Sprintf(`document.getElementById("key").value = %q`, key))
		page.click("#connect")
		complaint(part)
	}

	page.do(fmt.Sprintf(`document.getElementById("key").value = %q`, servertest.Key))
	conn := openControl(bounded(t), t, server, "gen-2.5", servertest.Key)
	expect(t, bounded(t), conn, `"session_started"`)
	inLine := `document.body.dataset.state === "opening" && ` +
		`document.getElementById("empty").textContent.includes("number 1 of 1 in the queue")`
	page.click("#connect")
	page.await("the page waits in the queue", inLine)
	page.onScreens("line")
	page.click("#connect")
	page.await("it leaves the line", disconnected)
	page.click("#connect")
	page.await("the page waits in the queue again", inLine)
	conn.CloseNow()
	page.await("the session is live once the other is freed", live)

	stop(t, server)
	complaint("The server is stopping")
}

// Every control has a name for screen readers.
func TestRealtimePageWorksByKeyboard(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	page := realtimePage(t, server, servertest.Key)
	reached := map[string]bool{}
	for range 40 {
		page.press("Tab", 9)
		reached[eval[string](page, `document.activeElement.id || document.activeElement.name`)] = true
	}
	for _, control := range []string{"key", "model", "source", "connect", "prompt", "clear-prompt", "image"} {
		if !reached[control] {
			t.Errorf("Tab does not reach %s", control)
		}
	}
	unnamed := eval[[]string](page, `[...document.querySelectorAll("input, select, textarea, button")].filter(one => `+
		`!(one.labels && one.labels.length) && !one.textContent.trim()).map(one => one.outerHTML)`)
	if len(unnamed) > 0 {
		t.Errorf("controls without a name: %q", unnamed)
	}
	page.do(`document.getElementById("key").focus()`)
	page.press("Enter", 13)
	page.await("Enter connects", live)
}

// Only a page from the same origin may embed the page in a frame.
func TestRealtimePageLoadsOnlyOwnResources(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	answer, err := server.Client().Get(bounded(t), "/realtime")
	if err != nil {
		t.Fatal(err)
	}
	policy := answer.Header.Get("Content-Security-Policy")
	for _, directive := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'self'",
		"form-action 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, directive) {
			t.Errorf("the policy %q lacks %s", policy, directive)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Errorf("the policy %q allows foreign content", policy)
	}
	if len(answer.Body) > 60_000 {
		t.Errorf("the page has %d bytes, want at most 60,000", len(answer.Body))
	}
}
