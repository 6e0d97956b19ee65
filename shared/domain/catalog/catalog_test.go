package catalog_test

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
)

func TestEditingModelsAreRealtime(t *testing.T) {
	known, err := catalog.Default("gen")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range known.Models() {
		if want := m.Kind == catalog.Restyle || m.Kind == catalog.Edit || m.Kind == catalog.TryOn; m.Realtime != want {
			t.Errorf("%s, which is of the kind %s: realtime=%t", m.ID, m.Kind, m.Realtime)
		}
	}
}

func TestFamilyRenamesEverythingAndNothingElse(t *testing.T) {
	known, err := catalog.Default("acme")
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := known.Find("acme-latest"); !ok || m.ID != "acme-2.5" {
		t.Errorf("acme-latest does not resolve to acme-2.5")
	}
	if _, ok := known.Find("gen-2.5"); ok {
		t.Error("gen-2.5 is known to a catalog of another family")
	}
	for _, family := range []string{"", "a b", "a/b", "ü", "a.b"} {
		if _, err := catalog.Default(family); err == nil {
			t.Errorf("family %q was accepted", family)
		}
	}
}

func TestFitKeepsTheAspectRatio(t *testing.T) {
	for _, c := range []struct{ box, input, want string }{
		{"1280x720", "1920x1080", "1280x720"},
		{"1280x720", "640x360", "1280x720"},   // enlarged
		{"1280x720", "1080x1920", "720x1280"}, // width and height swapped
		{"1280x704", "1280x720", "1252x704"},  // 1251.6 rounds to the even number 1252
		{"1088x624", "1920x1080", "1088x612"},
		{"1280x720", "500x500", "720x720"},
		{"1280x720", "4096x2", "1280x2"}, // the minimum is 2
		{"1280x720", "3x4000", "2x1280"},
		{"832x480", "1x1", "480x480"},
	} {
		if got := size(t, c.box).Fit(size(t, c.input)).String(); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.input, c.box, got, c.want)
		}
	}
}

func TestSourceResolutionKeepsInput(t *testing.T) {
	m := &catalog.Model{FPS: 20, Sizes: map[string]catalog.Size{"720p": size(t, "1280x704"), "source": size(t, "3840x2160")}}
	for _, c := range []struct {
		resolution, input string
		rate              float64
		want              catalog.Plan
	}{
		{"720p", "4000x2668", 30, catalog.Plan{Width: 1056, Height: 704, FPS: 20}},
		{"source", "1919x1081", 29.97, catalog.Plan{Width: 1920, Height: 1082, FPS: 30}},
		{"source", "1080x1920", 24, catalog.Plan{Width: 1080, Height: 1920, FPS: 24}},
		{"source", "64x36", 0, catalog.Plan{Width: 64, Height: 36, FPS: 20}},
		{"source", "7680x4320", 240, catalog.Plan{Width: 3840, Height: 2160, FPS: 60}},
	} {
		if got := m.Plan(c.resolution, "", size(t, c.input), c.rate); got != c.want {
			t.Errorf("%s of %s at %g: %+v, want %+v", c.resolution, c.input, c.rate, got, c.want)
		}
	}
}

func size(t *testing.T, text string) (s catalog.Size) {
	t.Helper()
	width, height, _ := strings.Cut(text, "x")
	for target, digits := range map[*int]string{&s.Width: width, &s.Height: height} {
		for _, d := range digits {
			*target = *target*10 + int(d-'0')
		}
	}
	return s
}

func TestInvalidCatalogNamesTheLine(t *testing.T) {
	const head = "limits:\n  video: {duration: 5m, width: 4096, height: 4096}\n  image: {pixels: 5}\nforms:\n  f:\n" +
		"    fields:\n"
	const fields = "      - {name: data, type: video}\n" +
		"      - {name: resolution, type: choice, values: [720p], default: 720p}\n"
	const models = "models:\n  - {id: a, kind: edit, form: f, fps: 20, sizes: {720p: 1280x720}}\n"
	if _, err := catalog.Parse([]byte(head+fields+models), "gen"); err != nil {
		t.Fatalf("the valid catalog was rejected: %v", err)
	}
	workflow := func(entry string) string {
		return head + fields + strings.Replace(models, "fps: 20", "fps: 20, comfyui: {"+entry+"}", 1)
	}
	for _, c := range []struct{ name, source, want string }{
		{"unknown key", head + fields + models + "surprise: 1\n", "[11:1]"},
		{"an unknown form", head + fields + strings.Replace(models, "form: f", "form: g", 1), `line 10: model "a": unknown form "g"`},
		{"a duplicate name", head + fields + models + "  - {id: a, kind: edit, form: f, fps: 20, sizes: {720p: 1280x720}}\n", `line 11: model "a": the name "a" already belongs`},
		{"an odd size", head + fields + strings.Replace(models, "1280x720", "1281x720", 1), "line 10:"},
		{"an unknown field type", head + "      - {name: x, type: blob}\n" + fields + models, "line 7:"},
		{"a seed that is not an integer", head + "      - {name: seed, type: text}\n" + fields + models, "line 7:"},
		{"a seed without limits", head + "      - {name: seed, type: integer}\n" + fields + models, "line 7:"},
		{"a seed beyond 32 bits", head + "      - {name: seed, type: integer, min: 0, max: 4294967296}\n" + fields + models, "line 7:"},
		{"a negative seed", head + "      - {name: seed, type: integer, min: -1, max: 5}\n" + fields + models, "line 7:"},
		{"an unknown kind", head + fields + strings.Replace(models, "kind: edit", "kind: dream", 1), "line 10:"},
		{"no models", head + fields, "no models"},
		{"invalid YAML", "limits: [", "1"},
		{"no workflow", workflow("prompt: 6.text, data: 1.image, result: 9"), "line 10: model \"a\": comfyui: workflow is missing"},
		{"no result", workflow("workflow: a.json, prompt: 6.text, data: 1.image"), "comfyui: result is missing"},
		{"no prompt", workflow("workflow: a.json, data: 1.image, result: 9"), "comfyui: prompt is missing"},
		{"no data", workflow("workflow: a.json, prompt: 6.text, result: 9"), "comfyui: data must say where the input goes"},
		{"an invalid place", workflow("workflow: a.json, prompt: text, data: 1.image, result: 9"), `comfyui: prompt: "text" must be the id`},
		{"an unknown option", workflow("workflow: a.json, prompt: 6.text, data: 1.image, result: 9, options: {steps: 3.steps}"),
			`comfyui: options: the form f has no field "steps"`},
		{"a rate that cannot be interpolated", workflow("workflow: a.json, prompt: 6.text, data: 1.image, result: 9, interpolate: 3"),
			"comfyui: interpolate must divide fps"},
		{"an odd multiple", workflow("workflow: a.json, prompt: 6.text, data: 1.image, result: 9, multiple: 15"), "comfyui: multiple must be even"},
		{"an unknown key", workflow("workflow: a.json, prmpt: 6.text"), "[10:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := catalog.Parse([]byte(c.source), "gen")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestDefaultModelsExist(t *testing.T) {
	known, err := catalog.Default(catalog.DefaultFamily)
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[catalog.Kind]string{
		catalog.Edit: "gen-latest", catalog.Image: "gen-image-latest", catalog.TextToVideo: "gen-pro-t2v",
	} {
		if m, ok := known.First(kind); !ok || m.LatestName() != name {
			t.Errorf("%s: got %v, want %s", kind, m, name)
		}
	}
	if m, ok := known.First("sculpture"); ok {
		t.Errorf("found a model of kind %s", m.ID)
	}
}

func TestSufficesChecksFieldNames(t *testing.T) {
	form := &catalog.Form{Fields: []catalog.Field{
		{Name: "data", Required: true}, {Name: "prompt"}, {Name: "mask", Also: "mask.0"},
	}}
	for fields, want := range map[string]bool{
		"data": true, "data prompt": true, "data mask.0": true, "prompt": false, "data colour": false, "": false,
	} {
		if got := form.Suffices(strings.Fields(fields)...); got != want {
			t.Errorf("%q: got %t", fields, got)
		}
	}
}

func TestPricesAreExact(t *testing.T) {
	source, err := os.ReadFile("catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	priced := func(currency, clip, image string) (*catalog.Catalog, error) {
		text := strings.Replace(string(source), "\nlimits:", "\n"+currency+"\nlimits:", 1)
		text = strings.Replace(text, "kind: clip\n", "kind: clip\n"+clip, 1)
		return catalog.Parse([]byte(strings.Replace(text, "kind: image\n", "kind: image\n"+image, 1)), "gen")
	}
	known, err := priced("currency: EUR", "    price: {per_second: 0.05}\n", "    price: {per_edit: \"0.000001\"}\n")
	if err != nil {
		t.Fatal(err)
	}
	clip, _ := known.Find("gen-clip")
	image, _ := known.Find("gen-image-2")
	other, _ := known.Find("gen-2.5")
	want := []*catalog.MediaPrice{
		{Per: catalog.PerSecond, Millionths: 50_000, Currency: "EUR"}, {Per: catalog.PerEdit, Millionths: 1, Currency: "EUR"}, nil,
	}
	if got := []*catalog.MediaPrice{clip.Price, image.Price, other.Price}; !reflect.DeepEqual(got, want) {
		t.Errorf("got prices %+v, %+v and %+v", clip.Price, image.Price, other.Price)
	}
	for length, want := range map[time.Duration]int64{
		4960 * time.Millisecond: 248_000_000, time.Nanosecond: 1, 1_033_333_333: 51_666_667, math.MaxInt64: 461_168_601_842_738_791,
	} {
		if cost, ok := clip.Price.Of(length); cost != min(want, 1e15) || !ok {
			t.Errorf("%v cost %d, %v", length, cost, ok)
		}
	}
	if dear := (catalog.MediaPrice{Per: catalog.PerSecond, Millionths: 999_999_999_999}); first(dear.Of(24*time.Hour)) != 1e15 {
		t.Error("the cost is not limited")
	}
	if _, ok := clip.Price.Of(0); ok {
		t.Error("a price per second gave a cost without a length")
	}
	if cost, ok := image.Price.Of(0); cost != 1000 || !ok {
		t.Errorf("an image costs %d, %v", cost, ok)
	}
	if known.Currency != "EUR" || clip.SessionPrice != 0 {
		t.Errorf("the currency is %q, a session of a clip costs %d", known.Currency, clip.SessionPrice)
	}
	for _, wrong := range []struct{ currency, clip, image, says string }{
		{"currency: EUR", "    session_price: 1\n", "", "only models with realtime sessions"},
		{"", "    price: {per_second: 0.05}\n", "", `model "gen-clip": a price requires the currency`},
		{"currency: euro", "", "", `currency "euro": must be`},
		{"currency: EUR", "    price: {}\n", "", "either per_second or per_edit"},
		{"currency: EUR", "    price: {per_second: 1, per_edit: 1}\n", "", "either per_second or per_edit"},
		{"currency: EUR", "    price: {per_second: -1}\n", "", `the price "-1" must be a number`},
		{"currency: EUR", "    price: {per_second: 1e3}\n", "", `must be a number`},
		{"currency: EUR", "    price: {per_second: 0.0000001}\n", "", `must be a number`},
		{"currency: EUR", "    price: {per_second: 10000000}\n", "", `must be a number`},
		{"currency: EUR", "", "    price: {per_second: 1}\n", "must be per_edit"},
		{"currency: EUR", "", "    price: {per_edit: 1, sizes: {900p: 1}}\n", `a price for the size "900p" but no such size`},
		{"currency: EUR", "", "    price: {per_edit: 1, sizes: {480p: x}}\n", `the price "x" must be a number`},
	} {
		if _, err := priced(wrong.currency, wrong.clip, wrong.image); err == nil ||
			!strings.Contains(err.Error(), wrong.says) || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q %q %q: %v, want %s", wrong.currency, wrong.clip, wrong.image, err, wrong.says)
		}
	}
}

func first(cost int64, _ bool) int64 { return cost }

func TestSizesMayHaveTheirOwnPrice(t *testing.T) {
	source, err := os.ReadFile("catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(source), "\nlimits:", "\ncurrency: EUR\nlimits:", 1)
	known, err := catalog.Parse([]byte(strings.Replace(text, "kind: image\n",
		"kind: image\n    price: {per_edit: 0.05, sizes: {480p: 0.02}}\n", 1)), "gen")
	if err != nil {
		t.Fatal(err)
	}
	image, _ := known.Find("gen-image-2")
	if small, large := image.Price.At("480p").Millionths, image.Price.At("720p").Millionths; small != 20_000 || large != 50_000 {
		t.Errorf("480p costs %d, 720p %d", small, large)
	}
	if image.Price.At("480p").Sizes != nil || (*catalog.MediaPrice)(nil).At("480p") != nil {
		t.Error("the price of one size applies to others")
	}
}

func TestWorkflowsAreParsed(t *testing.T) {
	source, err := os.ReadFile("catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known, err := catalog.Parse([]byte(strings.Replace(string(source), "kind: image\n", `kind: image
    comfyui:
      workflow: edit.json
      prompt: 6.text
      seed: [3.seed, "57:3.noise_seed"]
      data: 1.image
      reference: 2.image
      without_reference: [2, 20]
      result: 9
      multiple: 16
      options: {resolution: 7.size}
`, 1)), "gen")
	if err != nil {
		t.Fatal(err)
	}
	image, _ := known.Find("gen-image-2")
	w := image.Workflow
	if got := fmt.Sprint(w.Places()); got != "[6.text 3.seed 57:3.noise_seed 1.image 2.image 7.size]" ||
		w.File != "edit.json" || w.Result != "9" || fmt.Sprint(w.WithoutReference) != "[2 20]" || w.Multiple != 16 ||
		w.FrameStep != 1 {
		t.Errorf("the workflow is %+v", w)
	}
	if clip, _ := known.Find("gen-2.5"); clip.Workflow != nil {
		t.Error("a model without a workflow has one")
	}
}
