package api

import (
	"net/http"

	"cutroom/shared/domain/catalog"
)

// Models is the group for resolving model names (docs/contract/media.md#model-resolution) and
// checking prompts (docs/contract/jobs.md#prompt-check).
func Models(s *service) []route {
	return []route{
		{method: http.MethodPost, path: "/v1/models/resolve", access: public, handle: s.resolveModels},
		{method: http.MethodGet, path: "/v1/engine", access: public, handle: s.showEngine},
		{method: http.MethodGet, path: "/v1/looks", access: public, handle: s.listLooks()},
		{method: http.MethodPost, path: "/v1/understand", access: public, handle: s.understand},
	}
}

type resolvedBody struct {
	ModelID  string             `json:"model_id,omitempty"`
	ModelIDs *map[string]string `json:"model_ids,omitempty"`
}

const maxResolved = 1000

func (s *service) resolveModels(w http.ResponseWriter, r *http.Request, _ call) error {
	sent, err := readLongJSON(r, maxPublicJSON, "")
	if err != nil {
		return err
	}
	if sent == nil {
		return problems{{[]string{"body"}, "Field required", "missing", nil, map[string]any{}}}
	}
	name, asked, found := sent.text("model")
	names, wrong := sent.texts("models", maxResolved)
	found = append(found, wrong...)
	if len(found) == 0 && !asked && names == nil {
		found = problems{bodyProblem("Send model, models or both.")}
	}
	if len(found) > 0 {
		return found
	}
	var resolved resolvedBody
	if asked {
		if resolved.ModelID, err = s.resolve(name); err != nil {
			return err
		}
	}
	if names != nil {
		ids := make(map[string]string, len(names))
		for _, name := range names {
			if ids[name], err = s.resolve(name); err != nil {
				return err
			}
		}
		resolved.ModelIDs = &ids
	}
	s.writeJSON(w, r, http.StatusOK, resolved)
	return nil
}

// resolve returns the canonical id for a model name. Errors: fault.NotFound.
func (s *service) resolve(name string) (string, error) {
	m, ok := s.Catalog.Find(name)
	if !ok {
		return "", catalog.UnknownModel(name)
	}
	return m.ID, nil
}
