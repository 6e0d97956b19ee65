package fence

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// launcherName is the name, argv[0], under which this program is the launcher.
const launcherName = "cutroom-fence"

// A program that is run under the launcher's name is the launcher, whichever
// program of the service it is, including tests. This is a case for init: a
// main that forgot to check would serve, or test, once more for every run of
// ffmpeg; and the initialization of other packages would cost each run its
// time.
func init() {
	if len(os.Args) != 2 || os.Args[0] != launcherName {
		return
	}
	var o order
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		fmt.Fprintln(os.Stderr, "fence:", err)
		os.Exit(exitNotRun)
	}
	if o.Ask {
		if err := json.NewEncoder(os.Stdout).Encode(tryLayers(o)); err != nil {
			os.Exit(exitNotRun)
		}
		os.Exit(0)
	}
	if o.Status < 3 {
		notRun(2, errors.New("no descriptor for the status"))
	}
	notRun(o.Status, launch(o))
}
