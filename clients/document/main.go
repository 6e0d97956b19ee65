// Command document prints the OpenAPI document for the client packages. It covers the models of CUTROOM_CATALOG in
// the family CUTROOM_FAMILY. By default, it covers the built-in models.
package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"cutroom/shared/app/setting"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/service/api"
)

func main() {
	if err := write(os.Stdout, os.Getenv("CUTROOM_FAMILY"), os.Getenv("CUTROOM_CATALOG")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(to io.Writer, family, file string) error {
	known, err := setting.Catalog(cmp.Or(family, catalog.DefaultFamily), file)
	if err != nil {
		return err
	}
	service := api.New(api.Config{
		Catalog: known, Authenticator: credential.NewAuthenticator(nil, nil, time.Now),
		Logger: slog.New(slog.DiscardHandler),
	}, api.OpenAPI)
	answer := httptest.NewRecorder()
	service.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	if answer.Code != http.StatusOK {
		return fmt.Errorf("the service responded with status %d: %s", answer.Code, answer.Body)
	}
	_, err = answer.Body.WriteTo(to)
	return err
}
