// Package understanding reports which parts of a request the preview engine follows.
package understanding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/scene"
	"cutroom/shared/engine/preview/title"
)

const Engine = "preview"

type Request struct {
	Kind      catalog.Kind
	Prompt    string
	Reference bool
	// Live is true for a session. Sessions support no ordinary edits, which need a finished result.
	Live bool
}

type Result struct {
	// Understood lists the followed parts in the order of their application. It is never nil.
	Understood []string
	// Ignored lists the ignored parts of the prompt, verbatim.
	Ignored []string
	// Notice is meant for the user. It is empty if every part was followed.
	Notice string
	// ByReference is true if only the reference image determines the edit.
	ByReference bool
	// Areas lists the understood looks that apply only to the people or only to the background.
	Areas []string
	// Edits lists the ordinary edits, in the order of application.
	Edits []look.Edit
}

const (
	ReferenceColors = "colors of the reference image"

	how = "New, changed or removed objects need a generative model, which an administrator of this service can connect."
	// unchanged is the start of notices about unchanged results.
	unchanged = "Nothing was changed: "
	objects   = "The preview engine tells people from the background, but cannot edit skin, skies or objects alone. "
	asAsked   = "Nothing was changed, as the prompt asks."
)

func Of(asked Request) Result {
	switch asked.Kind {
	case catalog.TextToVideo:
		return ofScene(asked)
	case catalog.ImageToVideo:
		return ofPicture(asked)
	case catalog.TryOn:
		return Result{Understood: []string{}, Notice: "Nothing was changed. " + Unsupported(asked.Kind)}
	}
	return ofLook(asked)
}

func ofLook(asked Request) Result {
	read := look.Read(asked.Prompt, nil)
	r := Result{Understood: read.Understood, Ignored: read.Ignored}
	if asked.Live || asked.Kind == catalog.Image && read.Topic != "size" && read.Topic != "text" {
		read.Topic = ""
	}
	unfit, unwritten, undrawn, opaque := r.order(asked, read.Edits)
	if read.Limited && (asked.Live || asked.Kind == catalog.Image) {
		r.Understood, unfit = r.Understood[len(read.Understood):], append(unfit, read.Understood...)
	}
	if asked.Live {
		unfit = append(unfit, read.Areas...)
	} else {
		r.Areas, r.Understood = read.Areas, append(r.Understood, read.Areas...)
	}
	used := slices.ContainsFunc(r.Edits, func(e look.Edit) bool { return e.Name() == look.Logo || e.ByReference() })
	followed := len(r.Understood) > 0
	if asked.Reference && !used && !read.Declined && (followed || len(read.Ignored) == 0) {
		r.Understood = append(r.Understood, ReferenceColors)
		r.ByReference = !followed
	}
	r.Notice = r.explain(read, followed, len(unfit)+len(unwritten) > 0)
	if opaque {
		r.Notice = strings.TrimSpace("A video is an MP4, which cannot be transparent, so its background becomes white. " +
			"Try “green screen”. " + r.Notice)
	}
	r.lack(undrawn, "The text is written without %s, which the font lacks. %s")
	r.lack(unwritten, "%s was not done: it needs a text in Latin, Greek or Cyrillic letters. %s")
	r.lack(unfit, "%s was not done: it needs "+needed(asked)+". %s")
	return r
}

// order adds the ordinary edits that the request allows. It returns the phrases of the other edits, the phrases of
// texts that the font cannot write, and the letters that it lacks.
func (r *Result) order(asked Request, edits []look.Edit) (unfit, unwritten, undrawn []string, opaque bool) {
	image := asked.Kind == catalog.Image
	for _, e := range edits {
		fit, lacking := title.Fit(e.Text())
		switch {
		case asked.Live, image && (!e.Still() || e.Span() != look.Span{}),
			(e.Name() == look.Logo || e.ByReference()) && !asked.Reference:
			unfit = append(unfit, e.Phrase)
			continue
		case e.Name() == look.Title && (fit == "" || strings.ContainsFunc(lacking, unicode.IsLetter)):
			unwritten = append(unwritten, e.Phrase)
			continue
		case lacking != "":
			e, undrawn = e.WithText(fit), append(undrawn, lacking)
		}
		if !image {
			e, opaque = e.Opaque(), opaque || e.Clear()
		}
		r.Edits, r.Understood = append(r.Edits, e), append(r.Understood, e.Label())
	}
	return unfit, unwritten, undrawn, opaque
}

// explain returns the notice about the words of a prompt. failed means that other sentences explain why an edit was
// not done.
func (r *Result) explain(read look.Result, followed, failed bool) string {
	switch left := len(read.Ignored) > 0; {
	case read.Declined:
		return asAsked
	case r.ByReference:
		return "The preview engine takes only the colors of the reference image. " + how
	case followed && left:
		return fmt.Sprintf("%s changed nothing. %s", quoted(read.Ignored), advice(read))
	case followed, failed:
		return ""
	case left:
		return fmt.Sprintf("%sthe preview engine does not follow %s. %s", unchanged, quoted(read.Ignored), advice(read))
	case read.Empty:
		return unchanged + "the prompt is empty."
	}
	return unchanged + "the prompt names no edit that the preview engine knows, such as " + examples[""] + "."
}

// lack adds ignored parts, and a sentence about them at the start of the notice.
func (r *Result) lack(parts []string, format string) {
	if len(parts) > 0 {
		r.Ignored = append(r.Ignored, parts...)
		r.Notice = strings.TrimSpace(fmt.Sprintf(format, quoted(parts), r.Notice))
	}
}

// examples has prompts that work, by the topic of a prompt that does not.
var examples = map[string]string{
	"":      "“watercolor”, “brighter” or “crop to square”",
	"sound": "“louder”, “lower the volume by 50%”, “mute” or “remove the background noise”",
	"time":  "“first 3 seconds”, “remove the last 2 seconds”, “from 2 to 5 seconds” or “slow motion 2x”",
	"text":  `“add the text "Hello" at the top in red”`,
	"size":  "“crop to square”, “fit into 9:16”, “resize to 1280x720” or “upscale”",
}

// advice returns sentences that help to reword the ignored parts of a prompt.
func advice(read look.Result) string {
	said, try := "", "Try words such as "+examples[read.Topic]+"."
	if len(read.Unknown) > 0 && !slices.Equal(read.Unknown, read.Ignored) {
		said = "Unknown words: " + quoted(read.Unknown) + ". "
	}
	switch {
	case read.Language != "":
		return "The prompt seems to be in " + read.Language + ". The preview engine reads Arabic, Bengali, Chinese, English, " +
			"French, German, Hindi, Italian, Japanese, Korean, Portuguese, Russian, Spanish and Urdu. " + try
	case read.Topic == "":
		return said + try + " " + objects + how
	}
	return said + try
}

// WithoutPeople returns the result for a picture or video that shows no person.
func (r Result) WithoutPeople() Result {
	var lost []string
	r.Edits = slices.DeleteFunc(slices.Clone(r.Edits), func(e look.Edit) bool {
		if e.NeedsPerson() {
			lost = append(lost, e.Label())
		}
		return e.NeedsPerson()
	})
	lost = append(lost, r.Areas...)
	if len(lost) == 0 {
		return r
	}
	r.Areas = nil
	r.Understood = slices.DeleteFunc(slices.Clone(r.Understood), func(name string) bool { return slices.Contains(lost, name) })
	r.Notice = strings.TrimSpace(fmt.Sprintf("No person was found: no face shows from the front. %s changed nothing. %s",
		quoted(lost), r.Notice))
	return r
}

// Planned applies the ordinary edits to a plan that was made without them.
func (r Result) Planned(plan catalog.Plan) catalog.Plan {
	if len(r.Edits) > 0 {
		plan.Width, plan.Height = look.SizeOf(r.Edits, plan.Width, plan.Height)
	}
	return plan
}

func (r Result) Length(clip time.Duration) time.Duration {
	return time.Duration(look.LengthOf(r.Edits, clip.Seconds()) * float64(time.Second))
}

// needed names the requirement that a request must meet for the edits.
func needed(asked Request) string {
	switch {
	case asked.Live:
		return "a finished video or picture, not a live session"
	case asked.Kind == catalog.Image:
		return "a video"
	}
	return "a reference image"
}

func ofScene(asked Request) Result {
	painted := scene.Read(asked.Prompt)
	read := look.ReadScenery(asked.Prompt, painted.Shows)
	r := Result{Understood: append([]string{}, painted.Understood...)}
	for _, phrase := range read.Ignored {
		if light := strings.TrimPrefix(phrase, "at "); !slices.Contains(painted.Understood, light) { // it shows the second mood
			r.Ignored = append(r.Ignored, phrase)
		}
	}
	for _, name := range read.Understood {
		if !slices.Contains(r.Understood, name) {
			r.Understood = append(r.Understood, name)
		}
	}
	const can = "The preview engine paints one of a few scenes: a bay, mountains, a forest, a city, northern lights, " +
		"a nebula, or flowing colors."
	switch {
	case len(painted.Understood) == 0:
		r.Notice = can + " The prompt names none of them. " + how
	case len(r.Ignored) > 0:
		r.Notice = fmt.Sprintf("%s It does not show %s. %s", can, quoted(r.Ignored), how)
	}
	return r
}

func ofPicture(asked Request) Result {
	r := Result{Understood: []string{"slow camera move"}, Notice: "The preview engine only moves the camera closer to the picture"}
	if asked.Reference {
		r.Understood, r.Notice = append(r.Understood, "last image"), r.Notice+", and fades to the last image"
	}
	r.Notice += ". "
	if prompt := strings.TrimSpace(asked.Prompt); prompt != "" {
		r.Ignored = []string{prompt}
		r.Notice += "It does so for every prompt, and ignores " + quoted(r.Ignored) + ". "
	}
	r.Notice += how
	return r
}

// Forecast returns the notice in the future tense, for a request that has not run.
func (r Result) Forecast() string {
	return strings.NewReplacer("Nothing was changed", "Nothing will be changed", "changed nothing", "will change nothing",
		"was not done", "will not be done").Replace(r.Notice)
}

func quoted(parts []string) string { return "“" + strings.Join(parts, "”, “") + "”" }

type Ignored struct {
	Why string `json:"why"`
	// Unless names another field, or is empty. The field has an effect only if the other field is set.
	Unless string `json:"unless,omitempty"`
}

// Ignores returns the fields of a model's form that are ignored, by name.
func Ignores(m *catalog.Model) map[string]Ignored {
	ignored := map[string]Ignored{}
	if _, offered := m.Form.Field("self_anchor"); offered {
		ignored["self_anchor"] = Ignored{
			Why:    "The preview engine uses this field only with a reference image, whose colors it applies.",
			Unless: "reference_image",
		}
	}
	return ignored
}

// Unsupported returns why the engine makes no edits of a kind, or "".
func Unsupported(kind catalog.Kind) string {
	if kind == catalog.TryOn {
		return "Try-on needs a GPU engine: set CUTROOM_ENGINE on the server to connect one."
	}
	return ""
}

// Same reports whether two models make the same edits.
func Same(a, b *catalog.Model) bool {
	families := map[catalog.Kind]catalog.Kind{catalog.Restyle: catalog.Edit, catalog.Clip: catalog.Edit}
	family := func(m *catalog.Model) catalog.Kind { return cmp.Or(families[m.Kind], m.Kind) }
	return family(a) == family(b) && a.FPS == b.FPS && maps.Equal(a.Sizes, b.Sizes)
}
