// Command make renders the sample media beside it: a clip to edit, a reference
// picture and a garment to try on. Everything is computed; nothing is anybody
// else's. Run it from the top of the tree: go run ./testdata/make
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"

	"cutroom/shared/engine/preview/look/noise"
	"cutroom/shared/engine/preview/scene"
	"cutroom/shared/platform/signals"
)

const (
	width, height = 640, 360
	fps, seconds  = 24, 4
	sampleRate    = 44100
)

func main() {
	ctx, stop := signals.Context()
	defer stop()
	if err := run(ctx, "testdata"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, folder string) error {
	if err := clip(ctx, filepath.Join(folder, "clip.mp4")); err != nil {
		return err
	}
	if err := reference(ctx, filepath.Join(folder, "reference.jpg")); err != nil {
		return err
	}
	return save(filepath.Join(folder, "garment.png"), func(w io.Writer) error {
		return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(w, garment())
	})
}

// clip writes four seconds of a sunset at the sea, with the sound of waves.
func clip(ctx context.Context, path string) error {
	sound, err := os.CreateTemp("", "waves-*.raw")
	if err != nil {
		return err
	}
	defer os.Remove(sound.Name())
	defer sound.Close()
	if _, err := sound.Write(waves()); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "ffmpeg", "-loglevel", "error", "-y",
		"-f", "rawvideo", "-pixel_format", "rgb24", "-video_size", fmt.Sprintf("%dx%d", width, height), "-framerate",
		fmt.Sprint(fps), "-i", "pipe:0",
		"-f", "s16le", "-ar", fmt.Sprint(sampleRate), "-ac", "2", "-i", sound.Name(),
		"-vf", "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p",
		"-c:v", "libx264", "-preset", "slow", "-crf", "21", "-profile:v", "high", "-threads", "1",
		"-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv",
		"-c:a", "aac", "-b:a", "96k", "-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact",
		"-movflags", "+faststart", path)
	cmd.Stdin, cmd.Stderr = &frames{ctx: ctx, scene: scene.Bay(7, "sunset", true)}, os.Stderr
	return cmd.Run()
}

// frames reads as the clip's pictures.
type frames struct {
	ctx   context.Context
	scene scene.Scene
	done  int
	rest  []byte
}

func (f *frames) Read(to []byte) (int, error) {
	if len(f.rest) == 0 {
		if f.done == fps*seconds {
			return 0, io.EOF
		}
		f.rest = make([]byte, 3*width*height)
		if err := f.scene.Paint(f.ctx, f.rest, width, height, float64(f.done)/fps); err != nil {
			return 0, err
		}
		f.done++
	}
	n := copy(to, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// waves is the sound of a calm sea, and a soft chord over it: 16 bits, stereo.
func waves() []byte {
	source := noise.NewSource(7)
	var out bytes.Buffer
	var low [2]float64
	for i := range sampleRate * seconds {
		t := float64(i) / sampleRate
		swell := 0.35 + 0.65*math.Pow(0.5+0.5*math.Sin(2*math.Pi*t/2.7-1.2), 2)
		chord := 0.0
		for k, frequency := range []float64{220, 277.18, 329.63, 415.30} {
			chord += math.Sin(2*math.Pi*frequency*t+float64(k)) * (0.6 + 0.4*math.Sin(2*math.Pi*t*0.23+float64(k)))
		}
		edge := math.Min(1, math.Min(t/0.25, (seconds-t)/0.4))
		for channel := range low {
			low[channel] += 0.09 * (source.Normal() - low[channel])
			sample := edge * (0.30*swell*low[channel] + 0.022*chord)
			_ = binary.Write(&out, binary.LittleEndian, int16(32000*math.Max(-1, math.Min(1, sample))))
		}
	}
	return out.Bytes()
}

// reference writes a picture whose colours are worth taking over: northern
// lights.
func reference(ctx context.Context, path string) error {
	const width, height = 480, 270
	pixels := make([]byte, 3*width*height)
	if err := scene.Choose("northern lights in iceland", 5).Paint(ctx, pixels, width, height, 1.5); err != nil {
		return err
	}
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		copy(picture.Pix[4*i:], pixels[3*i:3*i+3])
		picture.Pix[4*i+3] = 255
	}
	return save(path, func(w io.Writer) error { return jpeg.Encode(w, picture, &jpeg.Options{Quality: 88}) })
}

func save(path string, encode func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := encode(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
