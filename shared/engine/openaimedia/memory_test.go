package openaimedia_test

import (
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/testkit/alloctest"
)

func TestResponsesWithSmallElementsUseLittleMemory(t *testing.T) {
	for name, c := range map[string]struct {
		kind   catalog.Kind
		call   string
		answer string
	}{
		"images":      {catalog.Image, edits, `{"data":[` + strings.Repeat("{},", 21<<20) + `{}]}`},
		"many texts":  {catalog.Image, edits, `{"data":[{"b64_json":""` + strings.Repeat(`,"b64_json":"AA=="`, 3<<20) + `}]}`},
		"long text":   {catalog.Image, edits, `{"data":[{"b64_json":"` + strings.Repeat("A", 60<<20) + `"}]}`},
		"deep":        {catalog.Image, edits, `{"data":` + strings.Repeat("[", 60<<20)},
		"video":       {catalog.TextToVideo, create, `{"error":` + strings.Repeat("[", 1<<19)},
		"video error": {catalog.TextToVideo, create, `{"status":"failed"` + strings.Repeat(`,"error":{}`, 90<<10) + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := serve(t, map[string][]answer{c.call: {says(c.answer)}})
			spec := newSpec(t, c.kind)
			alloctest.Check(t, len(c.answer), func() {
				_, err := e.Run(t.Context(), spec, func(engine.Progress) {})
				if err == nil || strings.Contains(err.Error(), "status 404") {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}
