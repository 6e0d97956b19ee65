package realtime_test

import (
	"flag"
	"image/color"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine/preview/frame"
)

var (
	mutatedFrames = flag.Int("mutated-frames", mutations, "number of frames that TestMutatedPicturesDoNotEndSessions sends")
	mutatedImages = flag.Int("mutated-images", mutations/5, "number of images that TestMutatedPicturesDoNotEndSessions sends")
)

const perSession = 20 // pictures, within the burst that the rate limit allows

// To send more pictures: -run TestMutatedPicturesDoNotEndSessions -mutated-frames 18000
// -mutated-images 3000.
func TestMutatedPicturesDoNotEndSessions(t *testing.T) {
	w := newWorld(t, setup{engine: frame.New(time.Now, func() uint32 { return 7 })})
	done := make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() { receivesFrames(t, w, done) })
	frames, images := frameSeeds(t), imageSeeds(t)
	var edited, refused atomic.Int64
	batches := make(chan func(c *client, random *rand.Rand))
	var senders sync.WaitGroup
	for sender := range uint64(4) {
		senders.Go(func() {
			random := rand.New(rand.NewPCG(12, sender))
			for send := range batches {
				models := []string{"gen-2.5", "gen-vton-3.6"}
				c := w.open(models[random.IntN(len(models))], studio)
				for range perSession {
					send(c, random)
				}
				c.leave()
			}
		})
	}
	for sent := 0; sent < *mutatedFrames; sent += perSession {
		batches <- func(c *client, random *rand.Rand) {
			c.sendsFrame(mediatest.Mutate(random, frames), &edited, &refused)
		}
	}
	for sent := 0; sent < *mutatedImages; sent += perSession {
		batches <- func(c *client, random *rand.Rand) {
			c.sendsImage(mediatest.Mutate(random, images), &edited, &refused)
		}
	}
	close(batches)
	senders.Wait()
	close(done)
	other.Wait()
	t.Logf("%d pictures were accepted, %d were rejected", edited.Load(), refused.Load())
	if edited.Load() == 0 || refused.Load() == 0 {
		t.Error("either all or none of the pictures were edited, which proves nothing")
	}
}

// receivesFrames checks that a session of another account receives frames until the channel done is closed.
func receivesFrames(t *testing.T, w *world, done <-chan struct{}) {
	c := w.open("gen-2.5", rival)
	frames := 0
	for ; ; frames++ {
		select {
		case <-done:
			t.Logf("another session had %d frames edited during that time", frames)
			c.leave()
			return
		case <-time.After(100 * time.Millisecond):
		}
		c.show(plain(64, 36, red))
		if m := c.next(); m.frame == nil {
			t.Errorf("another session got %+v", m)
			return
		}
	}
}

func (c *client) sendsFrame(data []byte, edited, refused *atomic.Int64) {
	c.show(data)
	switch m := c.next(); {
	case m.frame != nil:
		edited.Add(1)
	case m.Type == "error" && m.Error != "Internal error":
		refused.Add(1)
	default:
		c.t.Errorf("got %+v of %x", m, data[:min(len(data), 4096)])
	}
}

// sendsImage sends a reference image and, if it is accepted, expects a frame edited with it.
func (c *client) sendsImage(data []byte, edited, refused *atomic.Int64) {
	c.setImage(data)
	m := c.next()
	if m.Type != "set_image_ack" || m.Error == "Internal error" {
		c.t.Errorf("got %+v of %x", m, data[:min(len(data), 4096)])
		return
	}
	if !*m.Success {
		refused.Add(1)
		return
	}
	edited.Add(1)
	c.show(plain(32, 18, color.White))
	if m := c.next(); m.frame == nil {
		c.t.Errorf("got %+v after %x", m, data[:min(len(data), 4096)])
	}
}

func frameSeeds(t *testing.T) [][]byte {
	return [][]byte{
		plain(64, 36, red), plain(7, 5, red), mediatest.ProgressiveJPEG,
		pictureOf(t, mediatest.Image{Name: "a.jpg", Width: 64, Height: 36, Orientation: 6}),
		pictureOf(t, mediatest.Image{Name: "b.jpg", Width: 48, Height: 48, PixelFormat: "yuvj420p"}),
		pictureOf(t, mediatest.Image{Name: "c.jpg", Width: 40, Height: 24, PixelFormat: "gray"}),
	}
}

func imageSeeds(t *testing.T) [][]byte {
	seeds := [][]byte{
		mediatest.WebPOverCanvas(t), mediatest.WebPBomb(), square(t, 1, red), square(t, 7, red), mediatest.ProgressiveJPEG,
	}
	for _, name := range []string{"a.png", "a.webp", "a.gif", "a.bmp", "a.tif", "a.avif", "a.jpg"} {
		seeds = append(seeds, pictureOf(t, mediatest.Image{Name: name, Width: 48, Height: 32}))
	}
	return append(
		seeds, pictureOf(t, mediatest.Image{Name: "b.webp", Width: 48, Height: 32, Args: []string{"-lossless", "1"}}),
	)
}

func pictureOf(t *testing.T, picture mediatest.Image) []byte {
	t.Helper()
	content, err := os.ReadFile(picture.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
