package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/credential"
)

func (w *world) putBudget(key, body string) answer {
	w.t.Helper()
	return w.request(http.MethodPut, "/v1/budgets", key, strings.NewReader(body), "Content-Type: application/json")
}

func TestAdminSetsKeyBudgets(t *testing.T) {
	w := newWorld(t, setup{})
	w.stopClock() // midnight might pass during the test
	admin := w.newAdmin("studio")
	key := w.createdKey(w.askKey(admin, `{"label": "render farm"}`)).ID
	must := func(what string, a answer, status int, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(a.body, part) {
				t.Errorf("%s: %s, which lacks %s", what, a.body, part)
			}
		}
		if a.status != status {
			t.Errorf("%s: %d %s, want %d", what, a.status, a.body, status)
		}
	}
	must("none", w.get("/v1/budgets", admin), 200, `{"budgets":[]}`)
	day := w.now().UTC().AddDate(0, 0, 1).Format(time.DateOnly) + "T00:00:00.000Z"
	ofKey := `"key":"` + key + `","period":"day","unit":"cost",`
	must("a budget", w.putBudget(admin, `{`+ofKey+`"limit": 12.50}`), 200, ofKey, `"limit":12.5`, `"used":0`,
		`"remaining":12.5`, `"resets_at":"`+day+`"`)
	must("another limit", w.putBudget(admin, `{`+ofKey+`"limit": 0.000000001}`), 200, `"limit":0.000000001`)
	must("an exponent", w.putBudget(admin, `{`+ofKey+`"limit": 1.25e2}`), 200, `"limit":125,`)
	must("zero", w.putBudget(admin, `{`+ofKey+`"limit": 0e-999999999}`), 200, `"limit":0,`)
	must("many digits", w.putBudget(admin, `{`+ofKey+`"limit": 999999999.123456789}`), 200, `"limit":999999999.123456789,`)
	must("more digits", w.putBudget(admin, `{`+ofKey+`"limit": 0.30000000000000004}`), 200, `"limit":0.3,`)
	must("too much", w.putBudget(admin, `{`+ofKey+`"limit": 1e17}`), 200, `"limit":1000000000,`)
	must("another unit", w.putBudget(admin, `{"key":"`+key+`","period":"month","unit":"tokens","limit":9007199254740993}`), 200,
		`"limit":9007199254740993,`, `"currency":null`)
	ofAccount := budget.ID{Account: "studio", Period: budget.Month, Unit: budget.Jobs}
	if err := w.budgets.Set(t.Context(), audit.Operator(time.Now()), budget.Budget{ID: ofAccount, Limit: 3}); err != nil {
		t.Fatal(err)
	}
	must("the account's own", w.putBudget(admin, `{"period":"month","unit":"jobs","limit":99}`), 403)
	must("the account's own", w.request(http.MethodDelete, "/v1/budgets?period=month&unit=jobs", admin, nil), 403)
	var listed struct {
		Budgets []struct {
			Key, Period, Unit string
			Limit             json.Number
		}
	}
	a := w.get("/v1/budgets", admin)
	if err := json.Unmarshal([]byte(a.body), &listed); err != nil || len(listed.Budgets) != 3 ||
		listed.Budgets[0].Key != "" || listed.Budgets[0].Limit != "3" || listed.Budgets[1].Key != key {
		t.Errorf("%v, %s", err, a.body)
	}
	for body, part := range map[string]string{
		`{}`: `"period"`, `{"key":7}`: `"key"`, `{"key":"` + key + `","period":"week","unit":"cost","limit":1}`: `'day' or 'month'`,
		`{"key":"` + key + `","period":"day","unit":"gold","limit":1}`:                      `session_seconds`,
		`{"key":"` + key + `","period":"day","unit":"cost"}`:                                `"limit"`,
		`{"key":"` + key + `","period":"day","unit":"cost","limit":-1}`:                     `"limit"`,
		`{"key":"` + key + `","period":"day","unit":"cost","limit":"12"}`:                   `"limit"`,
		`{"key":"` + key + `","period":"day","unit":"tokens","limit":99999999999999999999}`: `"limit"`,
		`{"key":"` + key + `","period":"day","unit":"tokens","limit":1000000000000000001}`:  `"limit"`,
		`{"key":"` + key + `","period":"day","unit":"tokens","limit":5000000.9}`:            `valid integer`,
		`{"key":"` + key + `","period":"day","unit":"jobs","limit":0.5}`:                    `valid integer`,
		`{"key":"` + key + `","period":"day","unit":"jobs","limit":1e-999999999}`:           `valid integer`,
	} {
		must(body, w.putBudget(admin, body), 422, part)
	}
	own := `"key":"` + idOf(admin) + `","period":"day","unit":"jobs"`
	must("its own", w.putBudget(w.newAdmin("studio"), `{`+own+`,"limit":1}`), 200)
	must("its own", w.putBudget(admin, `{`+own+`,"limit":99}`), 403, "its own budget")
	must("its own", w.request(http.MethodDelete, "/v1/budgets?period=day&unit=jobs&key="+idOf(admin), admin, nil), 403)
	limited := w.limitedAdmin("studio", credential.Limits{Models: []string{"gen-2.5"}})
	must("a key that may do more", w.putBudget(limited, `{`+ofKey+`"limit":99}`), 403, "has more permissions")
	must("a key that may do more", w.request(http.MethodDelete, "/v1/budgets?period=day&unit=cost&key="+key, limited, nil), 403)
	within := w.createdKey(w.askKey(limited, `{"label": "x"}`)).ID
	must("a key that may do as much", w.putBudget(limited, `{"key":"`+within+`","period":"day","unit":"jobs","limit":9}`), 200)
	rival := w.newAdmin("rival")
	must("another account", w.putBudget(rival, `{`+ofKey+`"limit":1}`), 404)
	must("another account", w.get("/v1/budgets", rival), 200, `{"budgets":[]}`)
	gone := "/v1/budgets?key=" + key + "&period=day&unit=cost"
	must("another account", w.request(http.MethodDelete, gone, rival, nil), 404)
	must("a deletion", w.request(http.MethodDelete, gone, admin, nil), 204)
	must("a second deletion", w.request(http.MethodDelete, gone, admin, nil), 404)
	must("nonsense", w.request(http.MethodDelete, "/v1/budgets?key="+key, admin, nil), 422, `"query","period"`)
}

// warn_url is checked like a webhook and kept if omitted. The audit log records only its host.
func TestWarnURLIsCheckedAndKept(t *testing.T) {
	w := newWorld(t, setup{})
	admin := w.newAdmin("studio")
	key := w.createdKey(w.askKey(admin, `{"label": "render farm"}`)).ID
	put := func(more string) answer {
		t.Helper()
		return w.putBudget(admin, `{"key":"`+key+`","period":"day","unit":"jobs","limit":5`+more+`}`)
	}
	const hook = "https://example.com/budgets?token=12345"
	for _, c := range []struct {
		more, shown string
		status      int
	}{
		{``, `"warn_url":null`, 200},
		{`,"warn_url":"` + hook + `"`, `"warn_url":"` + hook + `"`, 200},
		{`,"warn_url":"http://example.com/"`, "https://", 422},
		{`,"warn_url":"https://127.0.0.1/"`, "public internet", 422},
		{`,"warn_url":"https://169.254.169.254/latest"`, "public internet", 422},
		{`,"warn_url":"https://a@example.com/"`, "user name", 422},
		{`,"warn_url":"https://example.com/` + strings.Repeat("a", 2048) + `"`, "longer than 2048", 422},
		{`,"warn_url":7`, "string", 422},
		{``, `"warn_url":"` + hook + `"`, 200},
		{`,"warn_url":null`, `"warn_url":null`, 200},
		{`,"warn_url":"` + hook + `"`, `"warn_url":"` + hook + `"`, 200},
		{`,"warn_url":""`, `"warn_url":null`, 200},
	} {
		if a := put(c.more); a.status != c.status || !strings.Contains(a.body, c.shown) {
			t.Errorf("with %.60s: %d %s", c.more, a.status, a.body)
		}
	}
	if log := w.get("/v1/audit", admin).body; !strings.Contains(log, `"warn_host":"example.com"`) || strings.Contains(log, "12345") {
		t.Errorf("the audit log is %s", log)
	}
}
