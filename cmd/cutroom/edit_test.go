package main_test

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/testkit/servertest"
)

type video struct {
	width, height, fps int
	seconds            float64
	sound              bool
}

func checkVideo(t *testing.T, content []byte, want video) {
	t.Helper()
	if types := boxes(t, content); slices.Index(types, "moov") > slices.Index(types, "mdat") {
		t.Errorf("boxes %v: moov must precede mdat, or playing waits for the entire download", types)
	}
	frame := 1 / float64(want.fps)
	r := probe(t, content)
	if streams := map[bool]int{false: 1, true: 2}[want.sound]; len(r.Streams) != streams {
		t.Fatalf("%d streams, want %d", len(r.Streams), streams)
	}
	picture := r.Streams[0]
	if picture.CodecName != "h264" || picture.PixFmt != "yuv420p" || picture.Width != want.width ||
		picture.Height != want.height ||
		picture.FrameRate != fmt.Sprintf("%d/1", want.fps) {
		t.Errorf("got %+v, want h264, yuv420p, %dx%d, %d frames per second", picture, want.width, want.height, want.fps)
	}
	// Allow a millisecond for rounding.
	if d := number(t, picture.Duration); math.Abs(d-want.seconds) > frame+0.001 {
		t.Errorf("the duration is %.3f s, the input's %.3f s: more than a frame apart", d, want.seconds)
	}
	if frames := number(t, picture.Frames); math.Abs(frames-want.seconds*float64(want.fps)) > 1 {
		t.Errorf("%.0f frames in %.3f s at %d frames per second", frames, want.seconds, want.fps)
	}
	if want.sound {
		sound := r.Streams[1]
		if sound.CodecName != "aac" {
			t.Errorf("the sound is %s, want aac", sound.CodecName)
		}
		if d := number(t, sound.StartTime) - number(t, picture.StartTime); math.Abs(d) > frame {
			t.Errorf("sound and picture begin %.3f s apart", d)
		}
		if d := number(t, sound.Duration) - number(t, picture.Duration); math.Abs(d) > frame+0.001 {
			t.Errorf("sound and picture end %.3f s apart", d)
		}
	}
}

// Result sizes must match docs/contract/media.md#output-size: all sizes for 16:9, and one per model for 9:16.
func TestEveryModelEdits(t *testing.T) {
	t.Parallel()
	cases := []struct {
		names     []string
		input     string
		landscape video
	}{
		{[]string{"gen-restyle-2", "gen-restyle-latest", "gen-restyle-v2v"}, "clip", video{1252, 704, 25, 0.15, true}},
		{[]string{"gen-2.5", "gen-latest"}, "clip", video{1280, 720, 20, 0.15, true}},
		{[]string{"gen-2.6"}, "clip", video{1280, 720, 20, 0.15, true}},
		{[]string{"gen-2.1"}, "clip", video{1088, 612, 20, 0.15, true}},
		{[]string{"gen-vton-3.6", "gen-vton-latest"}, "clip", video{1280, 720, 20, 0.15, true}},
		{[]string{"gen-vton-3.5", "gen-vton-3", "gen-vton-2", "gen-2.1-vton-2"}, "clip", video{1280, 720, 20, 0.15, true}},
		{[]string{"gen-clip", "gen-clip-latest", "gen-pro-v2v"}, "clip", video{1252, 704, 25, 0.15, true}},
		{[]string{"gen-pro-t2v"}, "", video{1280, 704, 25, 0.12, false}},
		{[]string{"gen-pro-i2v"}, "picture", video{1252, 704, 25, 0.12, false}},
		{[]string{"gen-image-2", "gen-image-latest", "gen-pro-i2i"}, "picture", video{1252, 704, 0, 0, false}},
	}

	known, err := catalog.Default("gen")
	if err != nil {
		t.Fatal(err)
	}
	var tried, offered []string
	for _, c := range cases {
		tried = append(tried, c.names...)
	}
	for _, m := range known.Models() {
		offered = append(offered, m.Names()...)
	}
	slices.Sort(tried)
	slices.Sort(offered)
	if !slices.Equal(tried, offered) {
		t.Errorf("the catalog has %v, the table tests %v", offered, tried)
	}

	ctx := steps(t)
	// The catalog sets the length of results that are made without an input.
	if m, ok := known.Find("gen-pro-t2v"); !ok || m.Duration != 5*time.Second {
		t.Errorf("a video from text is %+v, want one of 5 s", m)
	}
	short := bytes.ReplaceAll(defaultCatalog(t), []byte("duration: 5s"), []byte("duration: 120ms"))
	client := start(t, t.TempDir(), "CUTROOM_WORKERS=2", "CUTROOM_CATALOG="+save(t, short)).Client()
	turned := map[int]bool{} // widths of the results for a tall clip
	for _, c := range cases {
		var ids []string
		for i, name := range c.names {
			form := servertest.Form{servertest.Text("prompt", "golden hour")}
			switch {
			case c.input == "picture":
				form = append(form, servertest.File("data", "picture.png", fixtures.picture))
			case c.input == "clip" && i == 1:
				form = append(form, servertest.File("data", "tall.mp4", fixtures.tall))
			case c.input == "clip":
				form = append(form, servertest.File("data", "tiny.mp4", fixtures.tiny))
			}
			job, err := client.Submit(ctx, name, form)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if i > 1 || i == 1 && turned[c.landscape.width] {
				// A job records the main name of its model, not the alias used in the request.
				if job, err = client.Job(ctx, job.ID); err != nil || job.Model != c.names[0] {
					t.Errorf("%s: %+v, %v", name, job, err)
				}
				if _, err := client.Call(ctx, http.MethodDelete, "/v1/jobs/"+job.ID, nil, 0); err != nil {
					t.Fatal(err)
				}
				continue
			}
			ids = append(ids, job.ID)
			turned[c.landscape.width] = turned[c.landscape.width] || i == 1
		}
		for i, name := range c.names[:len(ids)] {
			t.Run(name, func(t *testing.T) {
				job, err := client.Await(bounded(t), ids[i], nil)
				if err != nil || job.Status != "completed" || job.Model != c.names[0] {
					t.Fatalf("%+v (%+v), %v", job, job.Error, err)
				}
				result, err := client.Content(ctx, ids[i])
				if err != nil {
					t.Fatal(err)
				}
				want := c.landscape
				switch {
				case want.fps == 0:
					checkPicture(t, result, want.width, want.height)
					return
				case c.input == "clip" && i == 1:
					want.width, want.height = want.height, want.width
				}
				checkVideo(t, result.Body, want)
			})
		}
	}
}

func checkPicture(t *testing.T, result servertest.Answer, width, height int) {
	t.Helper()
	if mime := result.Header.Get("Content-Type"); mime != "image/png" {
		t.Errorf("Content-Type is %q", mime)
	}
	if r := probe(t, result.Body); len(r.Streams) != 1 || r.Streams[0].CodecName != "png" || r.Streams[0].Width != width ||
		r.Streams[0].Height != height {
		t.Errorf("got %+v, want a PNG of %dx%d", r.Streams, width, height)
	}
}
