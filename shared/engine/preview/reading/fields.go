package reading

import (
	"maps"

	"cutroom/shared/domain/catalog"
)

// Ignored is a field of a form that changes nothing.
type Ignored struct {
	// Why is for people.
	Why string `json:"why"`
	// Unless names a field with which it has an effect, or is "".
	Unless string `json:"unless,omitempty"`
}

// Ignores returns the fields of a model's form that the engine ignores, by name.
func Ignores(m *catalog.Model) map[string]Ignored {
	ignored := map[string]Ignored{}
	if _, offered := m.Form.Field("self_anchor"); offered {
		ignored["self_anchor"] = Ignored{
			Why:    "The preview engine measures where colors are taken to, which needs a reference image.",
			Unless: "reference_image",
		}
	}
	return ignored
}

// Same reports whether the engine makes the same of a request to either model.
func Same(a, b *catalog.Model) bool {
	return family(a.Kind) == family(b.Kind) && a.FPS == b.FPS && maps.Equal(a.Sizes, b.Sizes)
}

// family returns the representative of all kinds with the same edits.
func family(kind catalog.Kind) catalog.Kind {
	switch kind {
	case catalog.Restyle, catalog.Clip:
		return catalog.Edit
	}
	return kind
}
