// Package access is the table of who may do what (docs/contract/auth.md#who-may-do-what):
// a call of every route that requires a credential, with the status that each kind of
// credential gets. The tests of the services and the check of a deploy share it.
package access

import (
	"net/http"
	"strings"
)

// Statuses are a route's response statuses by the credential of the call. Any other
// credential gets 401 on every route.
type Statuses struct {
	// Credentials of the account. A token is called within its scope, unless it is
	// for other models or another origin.
	Key, AdminKey, Token, AdminToken, TokenForOtherModels, TokenForOtherOrigin int
	// Credentials of another account.
	OtherKey, OtherAdminKey, OtherToken int
}

// Call is an example call of a route that requires a credential.
type Call struct {
	// Endpoint is the route's method and pattern, Path the path that is called.
	Endpoint, Path, Body, ContentType string
	Statuses
}

// groups are the groups of routes that a key may be limited to, by how paths begin
// (docs/contract/auth.md#limits-of-a-key).
var groups = []struct{ prefix, name string }{
	{"/v1/jobs", "jobs"}, {"/v1/webhooks", "jobs"}, {"/v1/generate", "images"}, {"/v1/files", "files"},
	{"/v1/uploads", "files"}, {"/v1/realtime", "realtime"}, {"/v1/client", "tokens"}, {"/v1/keys", "keys"},
	{"/v1/audit", "keys"}, {"/v1/budgets", "keys"}, {"/v1/usage", "usage"}, {"/", "inference"},
}

// Group returns the name of the group that the route is in.
func (c Call) Group() string {
	_, path, _ := strings.Cut(c.Endpoint, " ")
	for _, group := range groups {
		if strings.HasPrefix(path, group.prefix) {
			return group.name
		}
	}
	return ""
}

// OfModel reports whether the call is about one model, or about a job of it.
func (c Call) OfModel() bool {
	_, path, _ := strings.Cut(c.Endpoint, " ")
	return strings.Contains(path, "/{id}")
}

// Fixtures are what the calls refer to, all of one account.
type Fixtures struct {
	// Video is the id of a model that needs nothing but a prompt, Image that of one that
	// edits images.
	Video, Image string
	// Ended and Cancelled are jobs of the model Video that have ended, the latter by
	// cancellation or not at all.
	Ended, Cancelled string
	// NoResult means that the job Ended has failed.
	NoResult bool
	// Stored and Deleted are files. The calls delete the second one.
	Stored, Deleted string
	// MD5 is that of Stored.
	MD5 string
	// KeyID is the id of a key, which the calls revoke.
	KeyID string
}

const (
	form     = "--cutroom\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nx\r\n--cutroom--\r\n"
	file     = "--cutroom\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nbytes\r\n--cutroom--\r\n"
	formType = "multipart/form-data; boundary=cutroom"
	jsonType = "application/json"
)

// Media returns a call of every route of the media service that requires a credential.
// Within a route a token is to be tried before a key, and a key before an admin key: the
// first that may delete something does.
func Media(f Fixtures) []Call { return append(jobs(f), accounts(f)...) }

func jobs(f Fixtures) []Call {
	content := http.StatusOK
	if f.NoResult {
		content = http.StatusConflict
	}
	return []Call{
		{"POST /v1/jobs/{id}", "/v1/jobs/" + f.Video, form, formType, Statuses{
			Key: 200, AdminKey: 200, Token: 200, AdminToken: 200, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 200, OtherAdminKey: 200, OtherToken: 200,
		}},
		{"GET /v1/jobs/{id}", "/v1/jobs/" + f.Ended, "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 200, AdminToken: 200, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 404,
		}},
		{"GET /v1/jobs", "/v1/jobs", "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 200, OtherAdminKey: 200, OtherToken: 403,
		}},
		{"DELETE /v1/jobs/{id}", "/v1/jobs/" + f.Cancelled, "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 200, AdminToken: 200, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 404,
		}},
		{"GET /v1/jobs/{id}/events", "/v1/jobs/" + f.Ended + "/events", "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 200, AdminToken: 200, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 404,
		}},
		{"GET /v1/jobs/{id}/content", "/v1/jobs/" + f.Ended + "/content", "", "", Statuses{
			Key: content, AdminKey: content, Token: content, AdminToken: content, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 404,
		}},
		{"GET /v1/jobs/{id}/thumbnail", "/v1/jobs/" + f.Ended + "/thumbnail", "", "", Statuses{
			Key: content, AdminKey: content, Token: content, AdminToken: content, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 404,
		}},
		{"POST /v1/jobs/{id}/shares", "/v1/jobs/" + f.Ended + "/shares", "", jsonType, Statuses{
			Key: content, AdminKey: content, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 403,
		}},
		{"GET /v1/jobs/{id}/deliveries", "/v1/jobs/" + f.Ended + "/deliveries", "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 200, AdminToken: 200, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 404,
		}},
		{"GET /v1/webhooks/secret", "/v1/webhooks/secret", "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 200, OtherAdminKey: 200, OtherToken: 403,
		}},
	}
}

func accounts(f Fixtures) []Call {
	return []Call{
		// A form without the image is not valid.
		{"POST /v1/generate/{id}", "/v1/generate/" + f.Image, form, formType, Statuses{
			Key: 422, AdminKey: 422, Token: 422, AdminToken: 422, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 422, OtherAdminKey: 422, OtherToken: 422,
		}},
		{"POST /v1/files", "/v1/files", file, formType, Statuses{
			Key: 200, AdminKey: 200, Token: 200, AdminToken: 200, TokenForOtherModels: 200, TokenForOtherOrigin: 403,
			OtherKey: 200, OtherAdminKey: 200, OtherToken: 200,
		}},
		{"GET /v1/files", "/v1/files", "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 200, OtherAdminKey: 200, OtherToken: 403,
		}},
		{"GET /v1/files/{file_id}", "/v1/files/" + f.Stored, "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 200, AdminToken: 200, TokenForOtherModels: 200, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 404,
		}},
		{"GET /v1/uploads/{file_id}", "/v1/uploads/" + f.Stored, "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 200, AdminToken: 200, TokenForOtherModels: 200, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 404,
		}},
		// The stored file is neither an image nor a video.
		{"GET /v1/uploads/{file_id}/thumbnail", "/v1/uploads/" + f.Stored + "/thumbnail", "", "", Statuses{
			Key: 404, AdminKey: 404, Token: 404, AdminToken: 404, TokenForOtherModels: 404, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 404,
		}},
		{"DELETE /v1/files/{file_id}", "/v1/files/" + f.Deleted, "", "", Statuses{
			Key: 204, AdminKey: 404, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 403,
		}},
		{"GET /v1/files/by-md5/{md5}", "/v1/files/by-md5/" + f.MD5, "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 404, OtherAdminKey: 404, OtherToken: 403,
		}},
		{"GET /v1/realtime/quota", "/v1/realtime/quota", "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 200, OtherAdminKey: 200, OtherToken: 403,
		}},
		{"POST /v1/client/tokens", "/v1/client/tokens", "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 200, OtherAdminKey: 200, OtherToken: 403,
		}},
		{"GET /v1/keys", "/v1/keys", "", "", Statuses{
			Key: 403, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 403, OtherAdminKey: 200, OtherToken: 403,
		}},
		{"POST /v1/keys", "/v1/keys", `{"label": "x"}`, jsonType, Statuses{
			Key: 403, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 403, OtherAdminKey: 200, OtherToken: 403,
		}},
		{"GET /v1/audit", "/v1/audit", "", "", Statuses{
			Key: 403, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 403, OtherAdminKey: 200, OtherToken: 403,
		}},
		{"DELETE /v1/keys/{key_id}", "/v1/keys/" + f.KeyID, "", "", Statuses{
			Key: 403, AdminKey: 204, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 403, OtherAdminKey: 404, OtherToken: 403,
		}},
		{"GET /v1/budgets", "/v1/budgets", "", "", Statuses{
			Key: 403, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 403, OtherAdminKey: 200, OtherToken: 403,
		}},
		{"PUT /v1/budgets", "/v1/budgets", `{"period": "day", "unit": "cost", "limit": 1}`, jsonType, Statuses{
			Key: 403, AdminKey: 403, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 403, OtherAdminKey: 403, OtherToken: 403,
		}},
		{"DELETE /v1/budgets", "/v1/budgets?key=key_000000000000&period=day&unit=cost", "", "", Statuses{
			Key: 403, AdminKey: 404, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 403, OtherAdminKey: 404, OtherToken: 403,
		}},
	}
}

// Gateway returns a call of every route of the gateway that requires a credential. None
// reaches a model server. Model is the id of a model.
func Gateway(model string) []Call {
	invalid := Statuses{
		Key: 400, AdminKey: 400, Token: 400, AdminToken: 400, TokenForOtherModels: 400, TokenForOtherOrigin: 403,
		OtherKey: 400, OtherAdminKey: 400, OtherToken: 400,
	}
	all := Statuses{
		Key: 200, AdminKey: 200, Token: 200, AdminToken: 200, TokenForOtherModels: 200, TokenForOtherOrigin: 403,
		OtherKey: 200, OtherAdminKey: 200, OtherToken: 200,
	}
	one := all
	one.TokenForOtherModels = http.StatusForbidden
	return []Call{
		{"POST /v1/chat/completions", "/v1/chat/completions", "{}", jsonType, invalid},
		{"POST /v1/completions", "/v1/completions", "{}", jsonType, invalid},
		{"POST /v1/responses", "/v1/responses", "{}", jsonType, invalid},
		{"POST /v1/messages", "/v1/messages", "{}", jsonType, invalid},
		{"POST /v1/messages/count_tokens", "/v1/messages/count_tokens", "{}", jsonType, invalid},
		{"POST /v1/embeddings", "/v1/embeddings", "{}", jsonType, invalid},
		{"POST /v1/rerank", "/v1/rerank", "{}", jsonType, invalid},
		{"POST /v1/score", "/v1/score", "{}", jsonType, invalid},
		{"GET /v1/models", "/v1/models", "", "", all},
		{"GET /v1/models/{id}", "/v1/models/" + model, "", "", one},
		{"GET /v1/usage", "/v1/usage", "", "", Statuses{
			Key: 200, AdminKey: 200, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: 200, OtherAdminKey: 200, OtherToken: 403,
		}},
	}
}

// Batches returns a call of every route of files and batches at the inference address
// (docs/contract/batches.md#calls), which not every home has. It makes a file, and no batch.
func Batches() []Call {
	form := "--cutroom\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n" + file
	of := func(status int) Statuses {
		return Statuses{
			Key: status, AdminKey: status, Token: 403, AdminToken: 403, TokenForOtherModels: 403, TokenForOtherOrigin: 403,
			OtherKey: status, OtherAdminKey: status, OtherToken: 403,
		}
	}
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
