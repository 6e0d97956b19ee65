package deploycheck

import "slices"

// AlarmNames returns the alarms that are looked for.
func AlarmNames() []string { return slices.Concat(alarmNames, optionalAlarms) }

// Runbook returns the section of the runbook that each check leads to.
func Runbook() map[string]string {
	sections := map[string]string{}
	for _, c := range checks() {
		sections[c.name] = c.runbook
	}
	return sections
}
