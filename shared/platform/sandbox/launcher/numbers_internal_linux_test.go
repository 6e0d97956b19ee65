package launcher

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestNumbersMatchKernelHeaders(t *testing.T) {
	for name, numbers := range map[string][2]uint64{
		"close_range":               {sysCloseRange, unix.SYS_CLOSE_RANGE},
		"landlock_create_ruleset":   {sysLandlockCreateRuleset, unix.SYS_LANDLOCK_CREATE_RULESET},
		"landlock_add_rule":         {sysLandlockAddRule, unix.SYS_LANDLOCK_ADD_RULE},
		"landlock_restrict_self":    {sysLandlockRestrictSelf, unix.SYS_LANDLOCK_RESTRICT_SELF},
		"O_PATH":                    {oPath, unix.O_PATH},
		"CLOSE_RANGE_CLOEXEC":       {closeRangeCloexec, unix.CLOSE_RANGE_CLOEXEC},
		"PR_CAP_AMBIENT":            {prCapAmbient, unix.PR_CAP_AMBIENT},
		"PR_CAP_AMBIENT_RAISE":      {prCapAmbientRaise, unix.PR_CAP_AMBIENT_RAISE},
		"PR_SET_NO_NEW_PRIVS":       {prSetNoNewPrivs, unix.PR_SET_NO_NEW_PRIVS},
		"SECCOMP_MODE_FILTER":       {seccompModeFilter, unix.SECCOMP_MODE_FILTER},
		"_LINUX_CAPABILITY_VERSION": {capabilityVersion3, unix.LINUX_CAPABILITY_VERSION_3},
		"CAP_DAC_READ_SEARCH":       {capDACReadSearch, unix.CAP_DAC_READ_SEARCH},
		"CREATE_RULESET_VERSION":    {landlockCreateRulesetVersion, unix.LANDLOCK_CREATE_RULESET_VERSION},
		"RULE_PATH_BENEATH":         {landlockRulePathBeneath, unix.LANDLOCK_RULE_PATH_BENEATH},
		"EXECUTE":                   {accessExecute, unix.LANDLOCK_ACCESS_FS_EXECUTE},
		"WRITE_FILE":                {accessWriteFile, unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		"READ_FILE":                 {accessReadFile, unix.LANDLOCK_ACCESS_FS_READ_FILE},
		"READ_DIR":                  {accessReadFolder, unix.LANDLOCK_ACCESS_FS_READ_DIR},
		"REMOVE_DIR":                {accessRemoveDir, unix.LANDLOCK_ACCESS_FS_REMOVE_DIR},
		"REMOVE_FILE":               {accessRemoveFile, unix.LANDLOCK_ACCESS_FS_REMOVE_FILE},
		"MAKE_DIR":                  {accessMakeDir, unix.LANDLOCK_ACCESS_FS_MAKE_DIR},
		"MAKE_REG":                  {accessMakeRegular, unix.LANDLOCK_ACCESS_FS_MAKE_REG},
		"REFER":                     {accessRefer, unix.LANDLOCK_ACCESS_FS_REFER},
		"TRUNCATE":                  {accessTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		"IOCTL_DEV":                 {accessIoctlDevice, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		"RESOLVE_UNIX":              {accessResolveUnix, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
		"BIND_TCP":                  {accessBindTCP, unix.LANDLOCK_ACCESS_NET_BIND_TCP},
		"CONNECT_TCP":               {accessConnectTCP, unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		"ABSTRACT_UNIX_SOCKET":      {scopeAbstractUnixSocket, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
		"SIGNAL":                    {scopeSignal, unix.LANDLOCK_SCOPE_SIGNAL},
		"a ruleset's scope": {
			uint64(unsafe.Offsetof(rulesetAttr{}.scoped)), uint64(unsafe.Offsetof(unix.LandlockRulesetAttr{}.Scoped)),
		},
		"a rule's descriptor": {
			uint64(unsafe.Offsetof(pathBeneathAttr{}.parent)), uint64(unsafe.Offsetof(unix.LandlockPathBeneathAttr{}.Parent_fd)),
		},
		"capabilities": {uint64(unsafe.Sizeof(capabilities{})), uint64(unsafe.Sizeof(unix.CapUserData{}))},
	} {
		if numbers[0] != numbers[1] {
			t.Errorf("%s is %#x here, and %#x in golang.org/x/sys/unix", name, numbers[0], numbers[1])
		}
	}
}
