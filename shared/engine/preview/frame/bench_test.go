package frame_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/engine/preview/look"
)

// Prompts can combine at most two moods and a medium.
var combined = []string{
	"underwater film noir woodblock", "cyberpunk neon rain, oil painting", "vhs vintage film watercolor",
	"vhs matrix mosaic", "vhs underwater oil painting", "dreamy fog impressionist",
}

// Each look is drawn on one core.
func BenchmarkEdit(b *testing.B) {
	in := pictureOf(b, frameOf(b, frame.Box, 1))
	for _, prompt := range append(append(look.Names(), ""), combined...) {
		b.Run(prompt, func(b *testing.B) {
			e := editor(b, catalog.Edit)
			e.SetPrompt(b.Context(), prompt)
			edited(b, e, in) // prepares the prompt's look
			begun := used(b)
			for b.Loop() {
				if _, err := e.Edit(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/(used(b)-begun).Seconds(), "frames/cpu-s")
		})
	}
}

// SetPrompt prepares the new prompt's look.
func BenchmarkSetPrompt(b *testing.B) {
	in := frameOf(b, frame.Box, 1)
	for _, prompt := range append(append(look.Names(), ""), combined...) {
		b.Run(prompt, func(b *testing.B) {
			e := editor(b, catalog.Edit)
			edit(b, e, in)
			begun := used(b)
			for i := 0; b.Loop(); i++ {
				e.SetPrompt(b.Context(), prompt+fmt.Sprint(" ", i)) // repeating the same prompt would cost nothing
			}
			b.ReportMetric((used(b)-begun).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// used returns this process's CPU time, which excludes all other work on the machine.
func used(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
