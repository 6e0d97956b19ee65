package understanding_test

import (
	"slices"
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/understanding"
)

// answer has the parts of a prompt that are followed and ignored, and the start of the notice.
type answer struct {
	kind                        catalog.Kind
	prompt                      string
	understood, ignored, notice string
}

const (
	edit, video, tryOn = catalog.Edit, catalog.TextToVideo, catalog.TryOn

	unfollowed = "Nothing was changed: the preview engine does not follow “"
	declined   = "Nothing was changed, as the prompt asks."
	scenes     = "The preview engine paints one of a few scenes: "
)

var answers = []answer{
	{edit, "un peu plus lumineux", "brighter (slight)", "", ""},
	// These prompts need a generative model.
	{edit, "replace the jacket with a red leather one", "", "replace the jacket with a red leather one", unfollowed},
	{edit, "a puppy on the beach", "", "puppy on the beach", unfollowed},
	{edit, "change the background to a beach", "background: bay", "", ""},
	{edit, "make the sky purple", "", "make the sky purple", unfollowed},
	{edit, "give her blue hair", "", "give her blue hair", unfollowed},
	{edit, "a red, leather jacket", "", "red; leather jacket", unfollowed},
	{edit, "change the color of the jacket to red", "", "change the color of the jacket to red", unfollowed},
	{edit, "make him smile", "", "make him smile", unfollowed},
	{edit, "a painting on the wall", "", "painting on the wall", unfollowed},
	{edit, "a red fire truck", "", "red fire truck", unfollowed},
	{edit, "remove the watermark", "", "remove the watermark", unfollowed},
	{edit, "pixelate the faces", "", "pixelate the faces", unfollowed},
	{edit, "add an anime character", "", "add an anime character", unfollowed},
	{edit, "upscale to 4k", "upscale 2x (bicubic)", "", ""},
	{edit, "make it a video for my friends", "", "friends", unfollowed},
	{edit, "añade un sombrero", "", "añade un sombrero", unfollowed},
	{edit, "给他戴一顶帽子", "", "他戴一顶帽", unfollowed},
	// These prompts request nothing.
	{edit, "without snow", "", "", declined},
	{edit, "ne change rien", "", "", declined},
	{edit, "不要下雪", "", "", declined},
	{edit, "बर्फ नहीं", "", "", declined},
	{edit, "", "", "", "Nothing was changed: the prompt is empty."},
	{edit, "make it amazing", "", "", "Nothing was changed: the prompt names no edit"},
	// These prompts are nonsense.
	{edit, "asdf qwerty zxcv", "", "asdf qwerty zxcv", unfollowed},
	// These prompts name a look.
	{edit, "Make it more cinematic, warmer colors", "cinematic; warmer", "", ""},
	{edit, "no rain, golden hour", "golden hour", "", ""},
	{edit, "turn day into night", "night", "", ""},
	{edit, "keep the background but make it watercolor", "watercolor", "", ""},
	// These prompts name a look and request more.
	{edit, "make it darker and add a hat", "darker", "add a hat", "“add a hat” changed nothing. "},
	{edit, "cyberpnk city at nigth", "cyberpunk neon; night", "", ""},
	{edit, "an oil painting of a castle", "oil painting", "castle", "“castle” changed nothing. "},
	{edit, "winter, night, rain", "winter; night", "rain", "“rain” changed nothing. "},
	{edit, "add text Hello World", "text “Hello World”", "", ""},
	{edit, "add text: SALE 50% at the top, watercolor", "watercolor; text “SALE 50%”", "", ""},
	{edit, "add text to the video", "", "add text", unfollowed},
	{edit, `remove the text "Hello"`, "", `remove the text "Hello`, unfollowed},
	// These prompts are about time.
	{edit, "at half the speed", "slow motion 2x", "", ""},
	{edit, "trim 1 second from the end", "remove the last 1 s", "", ""},
	{edit, "remove the last second", "remove the last 1 s", "", ""},
	{edit, "cut off the last 2 seconds", "remove the last 2 s", "", ""},
	{edit, "trim 2 seconds from the start", "skip the first 2 s", "", ""},
	{edit, "fade out at the end", "fade out", "", ""},
	{edit, "slow zoom in", "zoom in 1.5x", "slow", "“slow” changed nothing. "},
	{edit, "flip it horizontally", "mirror", "", ""},
	{edit, "让视频变慢", "slow motion 2x", "", ""},
	// These prompts are in other languages.
	{edit, "conviértelo en una acuarela", "watercolor", "", ""},
	{edit, "Faça em estilo anime no inverno", "winter; anime", "", ""},
	{edit, "把这个视频变成水彩画风格", "watercolor", "", ""},
	{edit, "इसे जलरंग चित्र बना दो", "watercolor", "", ""},
	{edit, "اجعله لوحة زيتية", "oil painting", "", ""},
	{edit, "এটাকে পেন্সিল স্কেচ করো", "pencil sketch", "", ""},
	{edit, "сделай в стиле аниме", "anime", "", ""},
	{edit, "mach es zu einem Ölgemälde", "oil painting", "", ""},
	{edit, "水彩画風にして", "watercolor", "", ""},
	// The background and the person are edited separately.
	{edit, "blur everything but the person", "blur (background)", "", ""},
	{edit, "black and white background with the person in color", "grayscale (background)", "", ""},
	{edit, "anime background and make the person watercolor", "anime (background); watercolor (person)", "", ""},
	{edit, "remove the background and make it white", "white background", "", ""},
	{edit, "change the background to a city at night", "background: city, night", "", ""},
	{edit, "replace the background with a green screen", "green background", "", ""},
	{edit, "remove bg", "white background", "", ""},
	{edit, "remove the people in the background", "", "remove the people in the background", unfollowed},
	{edit, "remove the background music", "", "remove the background music", unfollowed},
	{edit, "add a castle in the background", "", "add a castle in the background", unfollowed},
	{edit, "don't change the background", "", "", declined},
	{edit, "use this image as the background", "", "background", "“background” was not done: it needs a reference image"},
	{edit, "flouter l'arrière-plan", "blur (background)", "", ""},
	{edit, "entferne den hintergrund", "white background", "", ""},
	{edit, "把背景换成蓝色", "blue background", "", ""},
	{edit, "पृष्ठभूमि धुंधली करो", "blur (background)", "", ""},
	{edit, "احذف الخلفية", "white background", "", ""},
	// These prompts describe a video.
	{video, "a puppy on the beach", "bay", "puppy", scenes},
	{video, "ocean waves at sunset, watercolor", "bay; sunset; watercolor", "", ""},
	{video, "a city at night in the rain, cyberpunk", "city; night", "rain; cyberpunk", scenes},
	{video, "a cat playing the piano", "", "cat playing the piano", scenes},
	{video, "asdf", "", "asdf", scenes},
	{video, "dunes at sunset", "dunes; sunset", "", ""},
	{video, "aurora over the mountains", "aurora", "", ""},
	{tryOn, "a red plaid shirt", "", "", "Nothing was changed. Try-on needs a GPU engine"},
	{tryOn, "", "", "", "Nothing was changed. Try-on needs a GPU engine"},
}

func TestPromptsAreUnderstood(t *testing.T) {
	for _, c := range answers {
		got := understanding.Of(understanding.Request{Kind: c.kind, Prompt: c.prompt})
		if u, i := strings.Join(got.Understood, "; "), strings.Join(got.Ignored, "; "); u != c.understood || i != c.ignored {
			t.Errorf("%s %q: understood %q, ignored %q; want %q, %q", c.kind, c.prompt, u, i, c.understood, c.ignored)
		}
		if !strings.HasPrefix(got.Notice, c.notice) || c.notice == "" && got.Notice != "" {
			t.Errorf("%s %q: the notice is %q, want %q …", c.kind, c.prompt, got.Notice, c.notice)
		}
		if got.Understood == nil {
			t.Errorf("%s %q: Understood is nil", c.kind, c.prompt)
		}
		if len(got.Ignored) > 0 && got.Notice == "" {
			t.Errorf("%s %q: the notice does not say that %q is ignored", c.kind, c.prompt, got.Ignored)
		}
	}
}

func TestReferencesAreReported(t *testing.T) {
	for _, c := range []struct {
		kind        catalog.Kind
		prompt      string
		understood  []string
		byReference bool
	}{
		{edit, "", []string{understanding.ReferenceColors}, true},
		{edit, "make it look like this", []string{understanding.ReferenceColors}, true},
		{edit, "winter", []string{"winter", understanding.ReferenceColors}, false},
		{edit, "put this hat on him", nil, false},
		{edit, "don't change anything", nil, false},
		{tryOn, "a blue jacket", nil, false},
	} {
		got := understanding.Of(understanding.Request{Kind: c.kind, Prompt: c.prompt, Reference: true})
		if !slices.Equal(got.Understood, c.understood) || got.ByReference != c.byReference {
			t.Errorf("%s %q: %+v, want %q, by the reference %t", c.kind, c.prompt, got, c.understood, c.byReference)
		}
	}
}

func TestSessionsDoNotEditBackground(t *testing.T) {
	for _, prompt := range []string{"blur the background", "remove the background", "anime only on the person"} {
		got := understanding.Of(understanding.Request{Kind: edit, Prompt: prompt, Live: true})
		if len(got.Understood) > 0 || !strings.Contains(got.Notice, "not a live session") {
			t.Errorf("%q: %+v", prompt, got)
		}
	}
}
