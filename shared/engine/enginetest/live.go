package enginetest

import (
	"context"
	"errors"
	"image"
	"slices"
	"sync"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
	"cutroom/shared/testkit/conformance"
)

type LiveHarness struct {
	Engine engine.LiveEngine
	Model  *catalog.Model
	Prompt string
	Large  image.Point
}

func RunLive(t *testing.T, h LiveHarness) {
	for name, test := range map[string]func(*liveSuite){
		"settings are followed": (*liveSuite).isFollowed, "no settings": (*liveSuite).isLeft,
		"pictures of every kind": (*liveSuite).ofEveryKind, "pictures that cannot be edited": (*liveSuite).isRefused,
		"prompts during edits": (*liveSuite).changes,
	} {
		t.Run(name, func(t *testing.T) { test(&liveSuite{T: t, LiveHarness: h}) })
	}
}

type liveSuite struct {
	*testing.T
	LiveHarness
}

func (s *liveSuite) open() engine.LiveEditor {
	s.Helper()
	editor, err := s.Engine.Open(s.Context(), s.Model)
	conformance.OK(s, err)
	s.Cleanup(editor.Close)
	return editor
}

// live returns a picture with a gradient and colors. Its stride exceeds its width.
func live(size image.Point, ratio image.YCbCrSubsampleRatio, narrow bool) *engine.Picture {
	whole := image.NewYCbCr(image.Rect(0, 0, size.X+7, size.Y+3), ratio)
	for i := range whole.Y {
		whole.Y[i] = uint8(40 + i%whole.YStride*150/whole.YStride)
	}
	for i := range whole.Cb {
		whole.Cb[i], whole.Cr[i] = 110, uint8(100+i%whole.CStride*60/whole.CStride)
	}
	part := whole.SubImage(image.Rectangle{Max: size}).(*image.YCbCr)
	return &engine.Picture{YCbCr: *part, Narrow: narrow}
}

func (s *liveSuite) edit(editor engine.LiveEditor, picture *engine.Picture) *engine.Picture {
	s.Helper()
	before := slices.Concat(picture.Y, picture.Cb, picture.Cr)
	edited, err := editor.Edit(s.Context(), picture)
	conformance.OK(s, err)
	if !slices.Equal(before, slices.Concat(picture.Y, picture.Cb, picture.Cr)) {
		s.Error("the editor changed its input picture")
	}
	if edited.Narrow != picture.Narrow {
		s.Errorf("the range differs: narrow is %v", edited.Narrow)
	}
	if edited == picture {
		return edited
	}
	size := edited.Rect.Size()
	if edited.SubsampleRatio != image.YCbCrSubsampleRatio420 || edited.Rect.Min != (image.Point{}) ||
		size.X < 1 || size.Y < 1 {
		s.Fatalf("the edited picture has %v, want %v", edited.Rect, edited.SubsampleRatio)
	}
	if len(edited.Y) < edited.YOffset(size.X-1, size.Y-1)+1 || len(edited.Cb) < edited.COffset(size.X-1, size.Y-1)+1 ||
		len(edited.Cr) != len(edited.Cb) {
		s.Fatalf("the planes of %v have %d, %d and %d bytes", size, len(edited.Y), len(edited.Cb), len(edited.Cr))
	}
	return edited
}

func (s *liveSuite) ask(editor engine.LiveEditor, prompt string) {
	s.Helper()
	if _, err := editor.SetPrompt(s.Context(), prompt); err != nil {
		s.Errorf("the prompt %q: %v", prompt, err)
	}
}

// show sets or removes the reference image. An engine may reject either call.
func (s *liveSuite) show(editor engine.LiveEditor, picture *engine.ReferenceImage) {
	s.Helper()
	_, err := editor.SetImage(s.Context(), picture)
	if err != nil && (picture == nil || !fault.Is(err, fault.Invalid)) {
		s.Errorf("an image: %v", err)
	}
}

func mean(picture *engine.Picture) int {
	sum, size := 0, picture.Rect.Size()
	for y := range size.Y {
		for x := range size.X {
			sum += int(picture.Y[picture.YOffset(x, y)])
		}
	}
	return sum / (size.X * size.Y)
}

func (s *liveSuite) isFollowed() {
	editor := s.open()
	picture := live(image.Pt(640, 360), image.YCbCrSubsampleRatio420, true)
	report, err := editor.SetPrompt(s.Context(), s.Prompt)
	conformance.OK(s, err)
	if report.Engine == "" || report.Understood != nil && len(report.Understood) == 0 {
		s.Errorf("for a supported prompt, the engine reports %+v", report)
	}
	if edited := s.edit(editor, picture); edited == picture || slices.Equal(edited.Y, picture.Y) {
		s.Error("the prompt changed nothing")
	}
	s.ask(editor, "")
	if edited := s.edit(editor, picture); max(mean(edited)-mean(picture), mean(picture)-mean(edited)) > 2 {
		s.Errorf("without a prompt the luma is %d instead of %d", mean(edited), mean(picture))
	}
}

func (s *liveSuite) isLeft() {
	editor := s.open()
	for _, size := range []image.Point{{640, 360}, {1280, 720}, {321, 239}, {1, 1}, {1080, 1920}} {
		for _, ratio := range []image.YCbCrSubsampleRatio{image.YCbCrSubsampleRatio420, image.YCbCrSubsampleRatio444} {
			picture := live(size, ratio, size.X%2 == 0)
			edited := s.edit(editor, picture)
			if max(mean(edited)-mean(picture), mean(picture)-mean(edited)) > 2 {
				s.Errorf("%v, %v: the luma is %d instead of %d", size, ratio, mean(edited), mean(picture))
			}
		}
	}
}

func (s *liveSuite) ofEveryKind() {
	editor := s.open()
	s.ask(editor, s.Prompt)
	for _, size := range []image.Point{{640, 360}, {360, 640}, {321, 239}, {1, 1}, {1920, 1080}} {
		for _, ratio := range []image.YCbCrSubsampleRatio{image.YCbCrSubsampleRatio420, image.YCbCrSubsampleRatio444} {
			s.edit(editor, live(size, ratio, size.X%2 == 0))
		}
	}
}

func (s *liveSuite) isRefused() {
	editor := s.open()
	for _, size := range []image.Point{{}, s.Large} {
		empty := &engine.Picture{YCbCr: *image.NewYCbCr(image.Rectangle{Max: size}, image.YCbCrSubsampleRatio420)}
		if _, err := editor.Edit(s.Context(), empty); !fault.Is(err, fault.Invalid) {
			s.Errorf("a picture of %v: %v", size, err)
		}
	}
	ended, end := context.WithCancel(s.Context())
	end()
	picture := live(image.Pt(640, 360), image.YCbCrSubsampleRatio420, false)
	if _, err := editor.Edit(ended, picture); !errors.Is(err, context.Canceled) {
		s.Errorf("after the context has ended: %v", err)
	}
	s.edit(editor, picture)
}

func (s *liveSuite) changes() {
	editor := s.open()
	var setting sync.WaitGroup
	setting.Go(func() {
		for range 5 {
			s.ask(editor, s.Prompt)
			s.show(editor, &engine.ReferenceImage{Size: catalog.Size{Width: 1, Height: 1}, Pixels: []byte{200, 10, 10, 255}})
			s.ask(editor, "")
			s.show(editor, nil)
		}
	})
	for range 5 {
		s.edit(editor, live(image.Pt(160, 90), image.YCbCrSubsampleRatio420, true))
	}
	setting.Wait()
}
