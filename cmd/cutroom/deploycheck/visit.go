package deploycheck

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
)

// cleanTime bounds what is done after the checks.
const cleanTime = time.Minute

// accountPrefix begins the names of the accounts that checks make.
const accountPrefix = "check-"

// visit is a run of the checks.
type visit struct {
	Config
	http *http.Client
	// own makes most of the calls, other is another account.
	own, other account
	// video, image, edit and text are the models that are used.
	video, image, edit, text string
	// done is a job that is completed; empty if none is.
	done string
	// fleet is what was seen of the workers when the first job came.
	fleet fleet
	// lost is a job whose first worker was lost; empty if there is none.
	lost string
	// spent counts what costs.
	spent   spent
	summary Summary
}

// account is an account that the checks have made.
type account struct {
	name string
	// key, admin and token are its credentials.
	key, admin, token string
	// chats counts the completions that it has asked for.
	chats int
}

func newVisit(c Config) (*visit, error) {
	v := &visit{Config: c, http: newClient()}
	for kind, id := range map[catalog.Kind]*string{catalog.TextToVideo: &v.video, catalog.Image: &v.image, catalog.Edit: &v.edit} {
		model, ok := c.Catalog.First(kind)
		if !ok {
			return nil, fmt.Errorf("the catalog has no model of the kind %s, which the checks use", kind)
		}
		*id = model.ID
	}
	var drawn [5]byte
	if _, err := io.ReadFull(c.Random, drawn[:]); err != nil {
		return nil, fmt.Errorf("draw the name of an account: %w", err)
	}
	name := accountPrefix + hex.EncodeToString(drawn[:])
	v.own.name, v.other.name = name, name+"-b"
	return v, nil
}

// arrive makes the accounts with their keys and a client token.
func (v *visit) arrive(ctx context.Context) error {
	for _, made := range []struct {
		account string
		admin   bool
		key     *string
	}{{v.own.name, false, &v.own.key}, {v.own.name, true, &v.own.admin}, {v.other.name, false, &v.other.key}} {
		secret, err := credential.NewSecret(v.Random)
		if err != nil {
			return err
		}
		key, err := credential.NewKey(secret, made.account, credential.DefaultTier, "check of the deploy", v.Now())
		if err != nil {
			return err
		}
		key.Admin = made.admin
		if err := v.Keys.CreateKey(ctx, audit.Operator(key.CreatedAt), key); err != nil {
			return fmt.Errorf("make a key: %w", err)
		}
		*made.key = secret
	}
	return nil
}

// mint makes the client token, the first time that it is asked for one.
func (v *visit) mint(ctx context.Context) error {
	if v.own.token != "" {
		return nil
	}
	models := []string{v.video, v.image}
	text, err := v.textModel(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"expiresIn": 3600, "allowedModels": append(models, text)})
	if err != nil {
		return err
	}
	var token struct{ APIKey string }
	err = v.ask(ctx, request{method: http.MethodPost, path: "/v1/client/tokens", key: v.own.key, body: body,
		kind: jsonType}, &token)
	v.own.token = token.APIKey
	return err
}

// leave takes away what the checks have made. Records of jobs that have ended go by
// themselves, as all do (docs/contract/jobs.md#retention).
func (v *visit) leave(ctx context.Context) error {
	var left error
	for _, one := range []account{v.own, v.other} {
		if one.key != "" {
			left = errors.Join(left, v.cancelJobs(ctx, one), v.deleteFiles(ctx, one))
		}
		left = errors.Join(left, v.endKeys(ctx, one))
	}
	return left
}

func (v *visit) cancelJobs(ctx context.Context, one account) error {
	var left error
	for _, status := range []string{"pending", "processing"} {
		var page struct {
			Jobs []struct {
				ID string `json:"job_id"`
			}
		}
		if err := v.ask(ctx, request{path: "/v1/jobs?limit=1000&status=" + status, key: one.key}, &page); err != nil {
			return fmt.Errorf("list its jobs: %w", err)
		}
		for _, job := range page.Jobs {
			got, err := v.call(ctx, request{method: http.MethodDelete, path: "/v1/jobs/" + job.ID, key: one.key})
			// One that has ended meanwhile is a 409.
			if err == nil && got.status != http.StatusOK && got.status != http.StatusConflict {
				err = got.unexpected("cancel "+job.ID, http.StatusOK)
			}
			left = errors.Join(left, err)
		}
	}
	return left
}

func (v *visit) deleteFiles(ctx context.Context, one account) error {
	var page struct{ Files []struct{ ID string } }
	if err := v.ask(ctx, request{path: "/v1/files?limit=1000", key: one.key}, &page); err != nil {
		return fmt.Errorf("list its files: %w", err)
	}
	var left error
	for _, file := range page.Files {
		got, err := v.call(ctx, request{method: http.MethodDelete, path: "/v1/files/" + file.ID, key: one.key})
		if err == nil && got.status != http.StatusNoContent && got.status != http.StatusNotFound {
			err = got.unexpected("delete "+file.ID, http.StatusNoContent)
		}
		left = errors.Join(left, err)
	}
	return left
}

// endKeys revokes and deletes the keys of an account, those that the calls have made
// too. The list of keys may lag behind by a second, so those that are known are ended
// whether or not it has them.
func (v *visit) endKeys(ctx context.Context, one account) error {
	listed, left := v.Keys.ListKeys(ctx, one.name)
	ids := map[string]bool{}
	for _, key := range listed {
		ids[key.ID] = true
	}
	for _, secret := range []string{one.key, one.admin} {
		if secret != "" {
			ids[credential.KeyID(credential.HashOf(secret))] = true
		}
	}
	for id := range ids {
		key, err := v.Keys.RevokeKey(ctx, audit.Operator(v.Now().UTC()), id)
		if err == nil {
			err = v.Cloud.Forget(ctx, key)
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			left = errors.Join(left, fmt.Errorf("revoke %s: %w", id, err))
		}
	}
	return left
}
