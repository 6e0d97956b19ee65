// Package understanding reports which parts of a request the preview engine follows.
package understanding

import (
	"fmt"
	"slices"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/scene"
)

const Engine = "preview"

type Request struct {
	Kind      catalog.Kind
	Prompt    string
	Reference bool
}

type Result struct {
	// Understood lists the followed parts in the order in which they are applied. It is never nil.
	Understood []string
	// Ignored lists the ignored parts of the prompt, verbatim.
	Ignored []string
	// Notice is meant for the user. It is empty if every part was followed.
	Notice string
	// ByReference is true if the reference image alone determines the edit.
	ByReference bool
}

const (
	ReferenceColors  = "colors of the reference image"
	ReferenceGarment = "cloth of the reference image"

	how = "Anything else needs a generative model, which the server's setting CUTROOM_ENGINE connects."
	// unchanged is the start of notices about unchanged results.
	unchanged = "Nothing was changed: "
	asAsked   = "Nothing was changed, as the prompt asks."
)

func Of(asked Request) Result {
	switch asked.Kind {
	case catalog.TextToVideo:
		return ofScene(asked)
	case catalog.TryOn:
		return ofGarment(asked)
	}
	return ofLook(asked)
}

func ofLook(asked Request) Result {
	read := look.Read(asked.Prompt, nil)
	r := Result{Understood: read.Understood, Ignored: read.Ignored}
	followed, left := len(read.Understood) > 0, len(read.Ignored) > 0
	if asked.Reference && !read.Declined && (followed || !left) {
		r.Understood = append(r.Understood, ReferenceColors)
		r.ByReference = !followed
	}
	switch {
	case read.Declined:
		r.Notice = asAsked
	case r.ByReference:
		r.Notice = "The preview engine takes only the colors of the reference image. " + how
	case followed && left:
		r.Notice = fmt.Sprintf("%s changed nothing: the preview engine changes the look of the whole picture. %s",
			quoted(read.Ignored), how)
	case followed:
	case left:
		r.Notice = fmt.Sprintf("%sthe preview engine does not follow %s. It changes the look of the whole picture: try "+
			"“watercolor” or “winter night”. %s", unchanged, quoted(read.Ignored), how)
	case read.Empty:
		r.Notice = unchanged + "the prompt is empty."
	default:
		r.Notice = unchanged + "the prompt names no look that the preview engine knows, such as “watercolor” or “winter night”."
	}
	return r
}

func ofScene(asked Request) Result {
	painted := scene.Read(asked.Prompt)
	read := look.ReadScenery(asked.Prompt, painted.Shows)
	r := Result{Understood: slices.Clone(painted.Understood)}
	for _, phrase := range read.Ignored {
		if !slices.Contains(painted.Understood, phrase) { // the scene already shows a second mood's light
			r.Ignored = append(r.Ignored, phrase)
		}
	}
	for _, name := range read.Understood {
		if !slices.Contains(r.Understood, name) {
			r.Understood = append(r.Understood, name)
		}
	}
	if r.Understood == nil {
		r.Understood = []string{}
	}
	const can = "The preview engine paints one of a few scenes: a bay, dunes, mountains, a city, northern lights, a " +
		"nebula, or flowing colors."
	switch {
	case len(painted.Understood) == 0:
		r.Notice = can + " The prompt names none of them. " + how
	case len(r.Ignored) > 0:
		r.Notice = fmt.Sprintf("%s It does not show %s. %s", can, quoted(r.Ignored), how)
	}
	return r
}

func ofGarment(asked Request) Result {
	read := look.ReadCloth(asked.Prompt)
	r := Result{Understood: read.Understood, Ignored: read.Ignored}
	if asked.Reference && !read.Declined {
		r.Understood = append(r.Understood, ReferenceGarment)
	}
	switch {
	case len(r.Understood) > 0 && len(r.Ignored) > 0:
		r.Notice = fmt.Sprintf("The preview engine recolors the upper part of the clothes; it does not follow %s. %s",
			quoted(read.Ignored), how)
	case len(r.Understood) > 0:
		r.Notice = "The preview engine recolors the upper part of the clothes and keeps their cut. " + how
	case read.Declined:
		r.Notice = asAsked
	case len(r.Ignored) > 0:
		r.Notice = fmt.Sprintf("%sthe preview engine knows no color or cloth in %s. It recolors the upper part of the "+
			"clothes: name a color or pattern, such as “red plaid”, or send a reference image. %s", unchanged, quoted(read.Ignored), how)
	default:
		r.Notice = unchanged + "there is neither a reference image nor a color or cloth in the prompt."
	}
	return r
}

func quoted(parts []string) string { return "“" + strings.Join(parts, "”, “") + "”" }
