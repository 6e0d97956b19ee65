package frame_test

import (
	"testing"

	"cutroom/shared/look"
	"cutroom/shared/model"
	"cutroom/shared/preview/frame"
)

// BenchmarkEdit edits a frame on one core by every look.
func BenchmarkEdit(b *testing.B) {
	in := frameOf(b, frame.Box, 1)
	for _, prompt := range append(look.Names(), "") {
		b.Run(prompt, func(b *testing.B) {
			e := editor(b, model.Edit)
			e.SetPrompt(prompt)
			for b.Loop() {
				if _, err := e.Edit(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}
