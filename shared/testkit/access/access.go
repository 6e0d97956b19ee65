// Package access has an example call for every route that requires a credential, with the expected
// status for each kind of credential (docs/contract/auth.md#permissions). It is shared by the
// tests of both services.
package access

import (
	"net/http"
	"strings"
)

type Call struct {
	Endpoint, Path, Body, ContentType string
	Statuses
}

// A key may be limited to groups of routes, which are identified by path prefix
// (docs/contract/auth.md#limits-of-a-key).
var groups = []struct{ prefix, name string }{
	{"/v1/jobs", "jobs"}, {"/v1/webhooks", "jobs"}, {"/v1/generate", "images"}, {"/v1/files", "files"},
	{"/v1/uploads", "files"}, {"/v1/realtime", "realtime"}, {"/v1/client", "tokens"}, {"/v1/verify", "tokens"}, {"/v1/keys", "keys"},
	{"/v1/audit", "keys"}, {"/v1/budgets", "keys"}, {"/v1/usage", "usage"}, {"/", "inference"},
}

func (c Call) Group() string {
	_, path, _ := strings.Cut(c.Endpoint, " ")
	for _, group := range groups {
		if strings.HasPrefix(path, group.prefix) {
			return group.name
		}
	}
	return ""
}

func (c Call) OfModel() bool {
	_, path, _ := strings.Cut(c.Endpoint, " ")
	return strings.Contains(path, "/{id}")
}

// Fixtures are the records that the calls use. All of them belong to one account.
type Fixtures struct {
	// Video is a model that needs only a prompt. Image is a model that edits images.
	Video, Image string
	// Ended and Cancelled are jobs of the model Video that have ended. Cancelled is the job that
	// the DELETE call targets; it need not have been cancelled.
	Ended, Cancelled string
	Stored, Deleted  string
	MD5              string
	KeyID            string
}

const (
	form     = "--cutroom\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nx\r\n--cutroom--\r\n"
	file     = "--cutroom\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nbytes\r\n--cutroom--\r\n"
	formType = "multipart/form-data; boundary=cutroom"
	jsonType = "application/json"
)

// Media returns one call for every media service route that requires a credential. Try each route with a token, then
// a key, then an admin key, because the first credential that may delete a record deletes it.
func Media(f Fixtures) []Call { return append(jobs(f), accounts(f)...) }

func jobs(f Fixtures) []Call {
	return []Call{
		{"POST /v1/jobs/{id}", "/v1/jobs/" + f.Video, form, formType, ofModel(200, 200)},
		{"GET /v1/jobs/{id}", "/v1/jobs/" + f.Ended, "", "", ofModel(200, 404)},
		{"GET /v1/jobs", "/v1/jobs", "", "", ofKeys(200, 200)},
		{"DELETE /v1/jobs/{id}", "/v1/jobs/" + f.Cancelled, "", "", ofModel(200, 404)},
		{"GET /v1/jobs/{id}/events", "/v1/jobs/" + f.Ended + "/events", "", "", ofModel(200, 404)},
		{"GET /v1/jobs/{id}/content", "/v1/jobs/" + f.Ended + "/content", "", "", ofModel(200, 404)},
		{"GET /v1/jobs/{id}/thumbnail", "/v1/jobs/" + f.Ended + "/thumbnail", "", "", ofModel(200, 404)},
		// The previews are deleted when the job ends.
		{"GET /v1/jobs/{id}/preview", "/v1/jobs/" + f.Ended + "/preview", "", "", ofModel(404, 404)},
		{"GET /v1/jobs/{id}/credentials", "/v1/jobs/" + f.Ended + "/credentials", "", "", ofModel(404, 404)},
		{"POST /v1/jobs/{id}/shares", "/v1/jobs/" + f.Ended + "/shares", "", jsonType, ofKeys(200, 404)},
		{"GET /v1/jobs/{id}/deliveries", "/v1/jobs/" + f.Ended + "/deliveries", "", "", ofModel(200, 404)},
		{"GET /v1/webhooks/secret", "/v1/webhooks/secret", "", "", ofKeys(200, 200)},
	}
}

func accounts(f Fixtures) []Call {
	// By the time the admin key is tried, the key has already deleted the file.
	deleted := ofKeys(http.StatusNoContent, http.StatusNotFound)
	deleted.AdminKey = http.StatusNotFound
	return []Call{
		// A form without an image is invalid here.
		{"POST /v1/generate/{id}", "/v1/generate/" + f.Image, form, formType, ofModel(422, 422)},
		{"POST /v1/files", "/v1/files", file, formType, ofAny(200, 200)},
		{"GET /v1/files", "/v1/files", "", "", ofKeys(200, 200)},
		{"GET /v1/files/{file_id}", "/v1/files/" + f.Stored, "", "", ofAny(200, 404)},
		{"GET /v1/uploads/{file_id}", "/v1/uploads/" + f.Stored, "", "", ofAny(200, 404)},
		// The stored file is neither an image nor a video.
		{"GET /v1/uploads/{file_id}/thumbnail", "/v1/uploads/" + f.Stored + "/thumbnail", "", "", ofAny(404, 404)},
		{"GET /v1/uploads/{file_id}/credentials", "/v1/uploads/" + f.Stored + "/credentials", "", "", ofAny(404, 404)},
		{"DELETE /v1/files/{file_id}", "/v1/files/" + f.Deleted, "", "", deleted},
		{"GET /v1/files/by-md5/{md5}", "/v1/files/by-md5/" + f.MD5, "", "", ofKeys(200, 404)},
		{"GET /v1/realtime/quota", "/v1/realtime/quota", "", "", ofKeys(200, 200)},
		{"POST /v1/client/tokens", "/v1/client/tokens", "", "", ofKeys(200, 200)},
		{"POST /v1/verify", "/v1/verify", "", "", ofAny(200, 200)},
		{"GET /v1/keys", "/v1/keys", "", "", ofAdmins(200, 200)},
		{"POST /v1/keys", "/v1/keys", `{"label": "x"}`, jsonType, ofAdmins(200, 200)},
		{"GET /v1/audit", "/v1/audit", "", "", ofAdmins(200, 200)},
		{"DELETE /v1/keys/{key_id}", "/v1/keys/" + f.KeyID, "", "", ofAdmins(204, 404)},
		{"GET /v1/budgets", "/v1/budgets", "", "", ofAdmins(200, 200)},
		// Only the operator may set a budget for the entire account.
		{"PUT /v1/budgets", "/v1/budgets", `{"period": "day", "unit": "cost", "limit": 1}`, jsonType, ofAdmins(403, 403)},
		{"DELETE /v1/budgets", "/v1/budgets?key=key_000000000000&period=day&unit=cost", "", "", ofAdmins(404, 404)},
	}
}

// Gateway returns one call for every gateway route that requires a credential. None of the calls
// reaches a model server.
func Gateway(model string) []Call {
	invalid := ofAny(400, 400)
	all := ofAny(200, 200)
	one := all
	one.TokenForOtherModels = http.StatusForbidden
	return []Call{
		{"POST /v1/chat/completions", "/v1/chat/completions", "{}", jsonType, invalid},
		{"POST /v1/completions", "/v1/completions", "{}", jsonType, invalid},
		{"POST /v1/responses", "/v1/responses", "{}", jsonType, invalid},
		{"GET /v1/responses/{response_id}", "/v1/responses/resp_0", "", "", ofAny(404, 404)},
		{"DELETE /v1/responses/{response_id}", "/v1/responses/resp_0", "", "", ofKeys(404, 404)},
		{"GET /v1/responses/{response_id}/input_items", "/v1/responses/resp_0/input_items", "", "", ofAny(404, 404)},
		{"POST /v1/audio/transcriptions", "/v1/audio/transcriptions", form, formType, invalid},
		{"POST /v1/audio/speech", "/v1/audio/speech", "{}", jsonType, invalid},
		{"POST /v1/messages", "/v1/messages", "{}", jsonType, invalid},
		{"POST /v1/messages/count_tokens", "/v1/messages/count_tokens", "{}", jsonType, invalid},
		{"POST /v1/embeddings", "/v1/embeddings", "{}", jsonType, invalid},
		{"POST /v1/rerank", "/v1/rerank", "{}", jsonType, invalid},
		{"POST /v2/rerank", "/v2/rerank", "{}", jsonType, invalid},
		{"POST /rerank", "/rerank", "{}", jsonType, invalid},
		{"POST /v1/score", "/v1/score", "{}", jsonType, invalid},
		{"GET /v1/models", "/v1/models", "", "", all},
		{"GET /v1/models/{id}", "/v1/models/" + model, "", "", one},
		{"GET /v1/usage", "/v1/usage", "", "", ofKeys(200, 200)},
	}
}

// Batches returns one call for every route of files and batches at the inference address
// (docs/contract/batches.md#calls). The calls create a file but no batch.
func Batches() []Call {
	form := "--cutroom\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n" + file
	of := func(status int) Statuses { return ofKeys(status, status) }
	return []Call{
		{"POST /v1/files", "/v1/files", form, formType, of(200)},
		{"GET /v1/files", "/v1/files", "", "", of(200)},
		{"GET /v1/files/{file_id}", "/v1/files/file_0", "", "", of(404)},
		{"GET /v1/files/{file_id}/content", "/v1/files/file_0/content", "", "", of(404)},
		{"DELETE /v1/files/{file_id}", "/v1/files/file_0", "", "", of(404)},
		{"POST /v1/batches", "/v1/batches", "{}", jsonType, of(400)},
		{"GET /v1/batches", "/v1/batches", "", "", of(200)},
		{"GET /v1/batches/{batch_id}", "/v1/batches/batch_0", "", "", of(404)},
		{"POST /v1/batches/{batch_id}/cancel", "/v1/batches/batch_0/cancel", "", "", of(404)},
	}
}
