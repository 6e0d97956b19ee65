package gateway

import (
	"net/http"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/service/gateway/apierror"
)

// modelBody is a model in the list (docs/contract/gateway.md#model-list). The lengths of media models are 0.
type modelBody struct {
	ID              string          `json:"id"`
	Object          string          `json:"object"`
	Created         int64           `json:"created"`
	OwnedBy         string          `json:"owned_by"`
	MaxOutputLength int             `json:"max_output_length"`
	ContextLength   int             `json:"context_length"`
	Capabilities    []catalog.Route `json:"capabilities"`
}

func (g *Gateway) modelBody(row *catalog.Inference) modelBody {
	return modelBody{
		ID: row.ID, Object: "model", Created: g.started.Unix(), OwnedBy: "cutroom",
		MaxOutputLength: row.MaxOutputLength, ContextLength: row.ContextLength, Capabilities: row.Capabilities(),
	}
}

func (g *Gateway) mediaBody(m *catalog.Model) modelBody {
	return modelBody{
		ID: m.ID, Object: "model", Created: g.started.Unix(), OwnedBy: "cutroom", Capabilities: m.Capabilities(),
	}
}

// listModels serves GET /v1/models: the models that the caller may use.
func (g *Gateway) listModels(w http.ResponseWriter, _ *http.Request, who credential.Principal) error {
	list := struct {
		Object string      `json:"object"`
		Data   []modelBody `json:"data"`
	}{"list", []modelBody{}}
	for _, row := range g.config.Catalog().InferenceModels() {
		if !row.Placeholder && who.AllowsModel(row.ID) {
			list.Data = append(list.Data, g.modelBody(row))
		}
	}
	for _, m := range g.config.Catalog().Models() {
		if who.AllowsModel(m.Names()...) {
			list.Data = append(list.Data, g.mediaBody(m))
		}
	}
	return respond(w, list)
}

func (g *Gateway) getModel(w http.ResponseWriter, r *http.Request, who credential.Principal) error {
	id := r.PathValue("id")
	if m, ok := g.config.Catalog().Find(id); ok {
		if err := notAllowed(who.CheckModel(m.ID, m.Names()...)); err != nil {
			return err
		}
		return respond(w, g.mediaBody(m))
	}
	row, ok := g.config.Catalog().Inference(id)
	if !ok || row.Placeholder {
		return apierror.UnknownModel("%s", catalog.UnknownModel(id).Message)
	}
	if err := checkModel(who, row.ID); err != nil {
		return err
	}
	return respond(w, g.modelBody(row))
}

func checkModel(who credential.Principal, id string) error { return notAllowed(who.CheckModel(id)) }

func notAllowed(err error) error {
	if err == nil {
		return nil
	}
	return &apierror.Error{
		Status: http.StatusForbidden, Type: apierror.Permission, Code: apierror.ModelNotAllowed, Message: err.Error(),
	}
}
