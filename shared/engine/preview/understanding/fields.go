package understanding

import (
	"maps"

	"cutroom/shared/domain/catalog"
)

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

func Same(a, b *catalog.Model) bool {
	return family(a.Kind) == family(b.Kind) && a.FPS == b.FPS && maps.Equal(a.Sizes, b.Sizes)
}

// family returns one kind that represents all kinds with the same edits.
func family(kind catalog.Kind) catalog.Kind {
	switch kind {
	case catalog.Restyle, catalog.Clip:
		return catalog.Edit
	}
	return kind
}
