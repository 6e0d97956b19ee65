// Function tokens mints client tokens, POST /v1/client/tokens, and keeps the
// permanent keys of accounts: /v1/keys and what is below it.
package main

import (
	"crypto/rand"
	"net/http"
	"time"

	"cutroom/shared/api"
	"cutroom/shared/awsmedia"
	"cutroom/shared/credential"
	"cutroom/shared/lambdahttp"
)

func main() { lambdahttp.Main(tokens) }

func tokens() (http.Handler, lambdahttp.Form, error) {
	f, err := awsmedia.NewFunction()
	if err != nil {
		return nil, 0, err
	}
	f.Config.Minter = &credential.Minter{Store: f.Keys, Random: rand.Reader, Now: time.Now}
	f.Config.Keys = &credential.KeyService{Store: f.Keys, Random: rand.Reader, Now: time.Now}
	handler, err := f.Handler(api.Tokens, api.Keys)
	return handler, lambdahttp.Buffered, err
}
