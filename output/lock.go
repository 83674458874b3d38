package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ErrRunning says that another process holds the lock of a results folder: its
// run has not ended, and the folder must be read as it is.
var ErrRunning = errors.New("still running")

// ErrRecovering says that another process is completing a results folder.
var ErrRecovering = errors.New("being recovered")

var (
	// errLocked is what lockFile returns when another has the lock.
	errLocked = errors.New("locked by another process")
	// errLockGone says that the one who had the lock has ended its work, and
	// removed the file.
	errLockGone = errors.New("the lock is gone")
)

// What a lock is held for. The words are in the file, after the process's number.
const (
	lockOfRun     = "run"
	lockOfRecover = "recover"
)

// takeLock locks journal/lock of a results folder until the file is closed, by
// us or by the end of the process.
func takeLock(folder, work string) (*os.File, error) {
	path := filepath.Join(folder, journalFolder, lockName)
	file, err := os.OpenFile(filepath.Clean(path), os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // others may see that it is held
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lock %s: %w", path, errLockGone) // with its folder
	}
	if err != nil {
		if held := heldByOther(folder, path); held != nil {
			return nil, held // also one who may not write is told that it is in use
		}
		return nil, writeError(path, err)
	}
	if err := lockFile(file); err != nil {
		owner := lockedError(folder, path)
		err = errors.Join(err, file.Close())
		if errors.Is(err, errLocked) {
			return nil, owner
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The one who had it may have removed the file in the meantime.
	ours, err := file.Stat()
	named, statErr := os.Stat(path)
	if err != nil || statErr != nil || !os.SameFile(ours, named) {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("lock %s: %w", path, errLockGone)
	}
	// The words are only for the message of others; without them the lock holds too.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+" "+work+"\n"), 0)
	}
	return file, nil
}

// heldByOther looks at a lock that cannot be opened for writing.
func heldByOther(folder, path string) error {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil //nolint:nilerr // the caller has an error already
	}
	err = lockFile(file)
	if errors.Is(errors.Join(err, file.Close()), errLocked) {
		return lockedError(folder, path)
	}
	return nil
}

// lockedError says who holds a lock, as far as it is known.
func lockedError(folder, path string) error {
	data, _ := os.ReadFile(filepath.Clean(path)) // without it the process is not named
	number, work, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	process := ""
	if pid, err := strconv.Atoi(number); err == nil {
		process = fmt.Sprintf(" (process %d)", pid)
	}
	if work == lockOfRecover {
		return fmt.Errorf("%s is %w by another mcpbench%s: wait until it has ended", folder, ErrRecovering, process)
	}
	return fmt.Errorf("the run in %s is %w%s", folder, ErrRunning, process)
}

// lockRun makes the folder of the journal and locks it for this process.
func (f *Folder) lockRun(work string) error {
	dir := filepath.Join(f.path, journalFolder)
	if err := makeFolder(dir); err != nil {
		return writeError(dir, err)
	}
	lock, err := takeLock(f.path, work)
	if err != nil {
		return err
	}
	f.lock = lock
	return nil
}

// unlock gives the folder free and leaves the journal as it is.
func (f *Folder) unlock() error {
	lock := f.lock
	f.lock = nil
	if lock == nil {
		return nil
	}
	return lock.Close()
}

// endRun gives the folder free. When every segment was compacted, the journal
// goes too.
func (f *Folder) endRun() error {
	if f.lock == nil {
		return nil
	}
	names, err := journalNames(f.path)
	if err != nil || slices.ContainsFunc(names, isSegment) {
		return errors.Join(err, f.unlock())
	}
	for _, name := range f.damaged {
		if err := setAside(filepath.Join(f.path, journalFolder, name)); err != nil {
			return errors.Join(err, f.unlock())
		}
	}
	lock := f.lock
	f.lock = nil
	return removeJournal(f.path, lock)
}

// removeJournal removes what a journal has besides segments, its folder too
// unless there is something else in it, and gives up the lock.
func removeJournal(folder string, lock *os.File) error {
	dir := filepath.Join(folder, journalFolder)
	err := removeFile(filepath.Join(dir, connectsName))
	for _, name := range markNames {
		err = errors.Join(err, removeFile(filepath.Join(dir, name)))
	}
	if runtime.GOOS == "windows" { // an open file cannot be removed there
		err = errors.Join(err, lock.Close(), removeFile(filepath.Join(dir, lockName)))
	} else {
		err = errors.Join(err, removeFile(filepath.Join(dir, lockName)), lock.Close())
	}
	if err != nil {
		return fmt.Errorf("remove the journal: %w", err)
	}
	if rest, err := os.ReadDir(dir); err != nil || len(rest) > 0 {
		return nil //nolint:nilerr // files of others, or segments set aside: they stay
	}
	if err := removeFile(dir); err != nil && !errors.Is(err, fs.ErrExist) { // not empty: another has locked it anew
		return fmt.Errorf("remove the journal: %w", err)
	}
	return nil
}

// removeFile removes a file or an empty folder, if it is there.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// asideSuffix marks a file of the journal of which something could not be read.
const asideSuffix = ".damaged"

// setAside keeps a file under a name that is no segment's, and no other file's.
func setAside(path string) error {
	to := path + asideSuffix
	for n := 2; ; n++ {
		if _, err := os.Lstat(to); err != nil {
			break
		}
		to = fmt.Sprintf("%s%s.%d", path, asideSuffix, n)
	}
	if err := os.Rename(path, to); err != nil {
		return fmt.Errorf("set a damaged file aside: %w", err)
	}
	return nil
}
