package realtime_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/testkit/await"
)

func square(t *testing.T, side int, fill color.Color) []byte {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, side, side))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(fill), image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var (
	red  = color.RGBA{200, 20, 20, 255}
	blue = color.RGBA{20, 20, 200, 255}
)

// A client that will join a room does not know session_started. Parameters without effect are reported once.
func TestParametersOfRoomClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	const notice = "speed=fast has no effect: the engine has one speed. resolution=1080p has no effect: frames have the engine's size."
	c := w.dialWith(url.Values{"model": {"gen-2.6"}, "api_key": {studio}, "livekit_early_room_info": {"true"},
		"speed": {"fast"}, "resolution": {"1080p"}})
	c.say(`{"type":"prompt","prompt":7}`)
	c.ack("prompt_ack", "prompt must be a string.")
	for _, want := range []string{notice + " film noir", "film noir"} {
		c.say(`{"type":"prompt","prompt":"film noir"}`)
		if m := c.ack("prompt_ack", ""); m.Notice != want {
			t.Errorf("the notice is %q, want %q", m.Notice, want)
		}
	}
	c = w.dialWith(url.Values{"model": {"gen-2.6"}, "api_key": {studio}, "speed": {"slow"}, "resolution": {"720p"}})
	c.begins()
	c.say(`{"type":"prompt","prompt":"film noir"}`)
	if m := c.ack("prompt_ack", ""); m.Notice != "film noir" {
		t.Errorf("the notice is %q", m.Notice)
	}
}

func TestFramesFollowThePrompt(t *testing.T) {
	w := newWorld(t, setup{})
	c := w.open("gen-2.5", studio)
	c.painted(colorOf(""))
	const odd = `{"type":"prompt","prompt":"a \"watercolor\" é <b>\n"}`
	c.say(odd)
	if m := c.ack("prompt_ack", ""); string(m.Prompt) != `"a \"watercolor\" é \u003cb\u003e\n"` &&
		string(m.Prompt) != `"a \"watercolor\" é <b>\n"` {
		t.Errorf("the prompt was returned as %s", m.Prompt)
	}
	c.painted(colorOf("a \"watercolor\" é <b>\n"))
	c.say(`{"type":"prompt","prompt":"film noir","enhance_prompt":false}`)
	if m := c.ack("prompt_ack", ""); m.Engine != "canvas" || m.Understood == nil || m.Notice != "film noir" {
		t.Errorf("the acknowledgement has the outcome %+v", m)
	}
	c.painted(colorOf("film noir"))
	c.say(`{"type":"prompt","prompt":""}`)
	c.ack("prompt_ack", "")
	c.painted(colorOf(""))
	// An invalid message changes nothing and does not end the session.
	c.say(`{"type":"prompt","prompt":"` + strings.Repeat("é", 4000) + `"}`)
	c.ack("prompt_ack", "")
	for text, failure := range map[string]string{
		`{"type":"prompt"}`:                                              "prompt is required.",
		`{"type":"prompt","prompt":null}`:                                "prompt is required.",
		`{"type":"prompt","prompt":7}`:                                   "prompt must be a string.",
		`{"type":"prompt","prompt":"x","enhance_prompt":"no"}`:           "enhance_prompt must be true or false.",
		`{"type":"prompt","prompt":"` + strings.Repeat("é", 4001) + `"}`: "prompt is longer than 4000 characters.",
	} {
		c.say(text)
		c.ack("prompt_ack", failure)
	}
	c.say(`{"type":"prompt","prompt":"` + strings.Repeat("<", 1<<20) + `"}`)
	if m := c.ack("prompt_ack", "prompt is longer than 4000 characters."); len(m.Prompt) > 4 {
		t.Errorf("the acknowledgement repeats %d bytes of a prompt that is far too long", len(m.Prompt))
	}
	c.painted(colorOf(strings.Repeat("é", 4000)))
}

func TestFramesFollowTheImage(t *testing.T) {
	w := newWorld(t, setup{})
	c := w.open("gen-2.5", studio)
	ref := w.store("studio", square(t, 64, red))
	data := base64.StdEncoding.EncodeToString(square(t, 64, blue))
	set := func(members, failure string) {
		t.Helper()
		c.say(`{"type":"set_image",` + members + `}`)
		c.ack("set_image_ack", failure)
	}
	set(`"image_ref":"`+ref+`"`, "")
	c.painted(red)
	set(`"image_data":"`+data+`"`, "")
	c.painted(blue)
	set(`"image_data":null,"prompt":"winter"`, "")
	c.painted(colorOf("winter"))
	set(`"image_data":"data:image/png;base64,`+data+`","image_ref":null`, "")
	c.painted(blue)
	set(`"image_ref":null`, "")
	c.painted(colorOf("winter"))

	other := w.store("rival", square(t, 64, red))
	words := w.store("studio", []byte("hello"))
	large := w.store("studio", append(square(t, 64, red), make([]byte, 10<<20)...))
	const missing = "image_ref must be the id of a stored file."
	for _, wrong := range [][2]string{
		{`"x":1`, "image_ref or image_data is required; null removes the image."},
		{`"image_ref":"` + ref + `","image_data":"` + data + `"`, "Send image_ref or image_data, not both."},
		{`"image_ref":7`, "image_ref must be a string."},
		{`"image_data":{}`, "image_data must be a string."},
		{`"image_ref":"file_0"`, missing},
		{`"image_ref":"../../secret"`, missing},
		{`"image_ref":"` + other + `"`, missing},
		{`"image_ref":"` + words + `"`, "The image has an unknown format."},
		{`"image_ref":"` + large + `"`, "The image is larger than 10485760 bytes."},
		{`"image_data":"%%%"`, "image_data is not valid base64."},
		{`"image_data":""`, "The image has an unknown format."},
		{`"image_data":"` + base64.StdEncoding.EncodeToString(square(t, 64, red)[:60]) + `"`, "The image cannot be decoded."},
		{
			`"image_data":"` + base64.StdEncoding.EncodeToString(layered(plain(64, 32, red), 101)) + `"`,
			"The image has more than 16 scans.",
		},
		{`"image_ref":"` + ref + `","prompt":"` + strings.Repeat("x", 4001) + `"`, "prompt is longer than 4000 characters."},
		{`"image_ref":"` + ref + `","prompt":7`, "prompt must be a string."},
	} {
		set(wrong[0], wrong[1])
	}
	c.painted(colorOf("winter"))
}

// An expanded prompt replaces the original unless the client has sent another prompt by then.
func TestPromptsAreExpanded(t *testing.T) {
	release := make(chan string)
	w := newWorld(t, setup{enhancer: enhancer(func(ctx context.Context, prompt string) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case better := <-release:
			if better == "" {
				return "", errors.New("no idea")
			}
			return better, nil
		}
	})})
	c := w.open("gen-2.5", studio)
	prompt := func(text string) {
		t.Helper()
		c.say(text)
		c.ack("prompt_ack", "")
	}
	prompt(`{"type":"prompt","prompt":"one"}`)
	c.painted(colorOf("one"))
	release <- "one, but better"
	await.Until(t, "the expanded prompt is followed", func() bool {
		c.show(plain(32, 16, color.White))
		got := color.RGBAModel.Convert(c.next().frame.At(16, 8)).(color.RGBA)
		return near(got, colorOf("one, but better"), 12)
	})
	prompt(`{"type":"prompt","prompt":"two"}`)
	prompt(`{"type":"prompt","prompt":"three"}`)
	prompt(`{"type":"prompt","prompt":"four","enhance_prompt":false}`)
	c.painted(colorOf("four"))
	prompt(`{"type":"prompt","prompt":"five"}`)
	release <- ""
	c.painted(colorOf("five"))
}

type enhancer func(ctx context.Context, prompt string) (string, error)

func (e enhancer) Enhance(ctx context.Context, prompt string, _ int) (string, error) {
	return e(ctx, prompt)
}

func TestNewestFrameWins(t *testing.T) {
	w := newWorld(t, setup{})
	c := w.open("gen-2.5", studio)
	begun, release := make(chan struct{}, 100), make(chan struct{})
	before := func(ctx context.Context) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
	}
	w.engine.before.Store(&before)
	frame := func(number int) []byte { return plain(16*number, 16, color.White) }
	c.show(frame(1))
	await.Receive(t, "begun", begun)
	for number := 2; number <= 20; number++ {
		c.show(frame(number))
	}
	c.say(`{"type":"prompt","prompt":"after the frames"}`)
	c.ack("prompt_ack", "") // by now all frames have arrived
	close(release)
	var got []int
	for range 2 {
		got = append(got, c.next().frame.Bounds().Dx()/16)
	}
	if fmt.Sprint(got) != "[1 20]" {
		t.Errorf("the frames %v were returned, want the first and the newest", got)
	}
	c.painted(colorOf("after the frames"))
}

func TestSessionsTakeTurns(t *testing.T) {
	w := newWorld(t, setup{})
	var edits atomic.Int64
	before := func(context.Context) { edits.Add(1) }
	w.engine.before.Store(&before)
	var all []*client
	for range 8 {
		all = append(all, w.open("gen-2.5", studio))
	}
	for round := range 5 {
		for _, c := range all {
			c.show(plain(16*(round+1), 16, color.White))
		}
		for _, c := range all {
			if m := c.next(); m.frame == nil || m.frame.Bounds().Dx() != 16*(round+1) {
				t.Fatalf("round %d: %+v", round, m)
			}
		}
	}
	if edits.Load() != 40 {
		t.Errorf("%d edits", edits.Load())
	}
}

// An account with one session waits for only one or two edits of an account that has many sessions.
func TestAccountsTakeTurnsForFrames(t *testing.T) {
	w := newWorld(t, setup{})
	places := max(1, runtime.GOMAXPROCS(0)-1)
	begun, end := make(chan struct{}, 100), make(chan struct{})
	defer close(end)
	before := func(context.Context) {
		begun <- struct{}{}
		<-end
	}
	w.engine.before.Store(&before)
	var many []*client
	for range places + 8 {
		many = append(many, w.open("gen-2.5", studio))
	}
	other := w.open("gen-2.5", rival)
	for _, c := range many {
		c.show(plain(16, 16, color.White))
	}
	for range places {
		<-begun
	}
	other.show(plain(32, 16, color.White))
	other.say(`{"type": "prompt", "prompt": "read after the frame"}`)
	other.ack("prompt_ack", "")
	var edits atomic.Int64
	var ending sync.WaitGroup
	edited := make(chan struct{})
	ending.Go(func() {
		for {
			select {
			case end <- struct{}{}:
				edits.Add(1)
				time.Sleep(50 * time.Millisecond)
			case <-edited:
				return
			}
		}
	})
	m := other.next()
	close(edited)
	ending.Wait()
	if n := int(edits.Load()); m.frame == nil || m.frame.Bounds().Dx() != 32 || n > len(many) {
		t.Errorf("the other account got %+v after %d edits", m, n)
	}
}

func TestInvalidFrameIsRejected(t *testing.T) {
	w := newWorld(t, setup{})
	c := w.open("gen-2.5", studio)
	good := plain(64, 32, color.White)
	for _, wrong := range []struct {
		frame []byte
		want  string
	}{
		{nil, "A binary message must be a JPEG frame."},
		{[]byte("hello"), "A binary message must be a JPEG frame."},
		{square(t, 8, red), "A binary message must be a JPEG frame."},
		{good[:8], "The frame is malformed."},
		{good[:len(good)/2], "The frame is malformed."},
		{good[:len(good)-20], "The frame cannot be decoded as JPEG."},
		{giant(good), "The frame is larger than 1920x1080 pixels."},
		{layered(good, 101), "The frame has more than 16 scans."},
	} {
		c.show(wrong.frame)
		if m := c.next(); m.Type != "error" || !strings.HasPrefix(m.Error, wrong.want) {
			t.Errorf("got %+v, want %q", m, wrong.want)
		}
	}
	c.painted(colorOf(""))
}

func TestGrayAndRGBFramesAreEdited(t *testing.T) {
	w := newWorld(t, setup{engine: frame.New(time.Now, func() uint32 { return 7 })})
	c := w.open("gen-2.5", studio)
	grey := image.NewGray(image.Rect(0, 0, 61, 33))
	for i := range grey.Pix {
		grey.Pix[i] = 90
	}
	var encoded bytes.Buffer
	if err := jpeg.Encode(&encoded, grey, nil); err != nil {
		t.Fatal(err)
	}
	// The planes are white in YCbCr, but an Adobe marker declares them as RGB.
	white := plain(64, 32, color.White)
	labelled := slices.Concat(white[:2], []byte("\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"), white[2:])
	for what, f := range map[string]struct {
		frame []byte
		want  color.RGBA
	}{
		"grey":                {encoded.Bytes(), color.RGBA{90, 90, 90, 255}},
		"red, green and blue": {labelled, color.RGBA{255, 128, 128, 255}},
		"luma and chroma":     {white, color.RGBA{255, 255, 255, 255}},
	} {
		c.show(f.frame)
		m := c.next()
		if m.frame == nil {
			t.Fatalf("%s: no frame: %+v", what, m)
		}
		got := color.RGBAModel.Convert(m.frame.At(100, 100)).(color.RGBA)
		if !near(got, f.want, 4) {
			t.Errorf("%s: the frame is %v, want %v", what, got, f.want)
		}
	}
}

// giant returns a frame whose header claims 65535x65535 pixels.
func giant(frame []byte) []byte {
	frame = bytes.Clone(frame)
	at := bytes.Index(frame, []byte{0xff, 0xc0})
	copy(frame[at+5:], []byte{0xff, 0xff, 0xff, 0xff})
	return frame
}

// layered adds empty scans to a frame. A decoder must traverse the entire picture for each scan.
func layered(frame []byte, scans int) []byte {
	const scan = "\xff\xda\x00\x08\x01\x01\x00\x01\x01\x00\x00\x00"
	body, end := frame[:len(frame)-2], frame[len(frame)-2:]
	return slices.Concat(body, bytes.Repeat([]byte(scan), scans-1), end)
}

func TestUnknownMessageIsReported(t *testing.T) {
	w := newWorld(t, setup{})
	c := w.open("gen-2.5", studio)
	for _, text := range []string{
		"hello", "", "7", "[]", `"prompt"`, `{"type":7}`, `{"type":"prompt"`, strings.Repeat("[", 100_000),
		"{\"type\":\"prompt\",\"prompt\":\"\xff\"}",
	} {
		c.say(text)
		if m := c.next(); m.Type != "error" ||
			m.Error != "A text message must be a JSON object with a type." {
			t.Errorf("%.20s: got %+v", text, m)
		}
	}
	for _, text := range []string{`{}`, `null`, `{"type":"dance"}`} {
		c.say(text)
		if m := c.next(); m.Type != "error" || !strings.HasPrefix(m.Error, "Unknown message type.") {
			t.Errorf("%s: got %+v", text, m)
		}
	}
	c.painted(colorOf(""))
	c.say(`{"type":"livekit_join"}`)
	const no = "LiveKit transport not allowed on this server"
	c.rejected(websocket.StatusPolicyViolation, no)
	w.active("studio", 0)
}
