package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// ErrRunning says that another process holds the lock of a results folder: its
// run has not ended, and the folder must be read as it is.
var ErrRunning = errors.New("still running")

// errLocked is what lockFile returns when another has the lock.
var errLocked = errors.New("locked by another process")

// takeLock locks journal/lock of a results folder until the file is closed, by
// us or by the end of the process.
func takeLock(folder string) (*os.File, error) {
	path := filepath.Join(folder, journalFolder, lockName)
	file, err := os.OpenFile(filepath.Clean(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, writeError(path, err)
	}
	if err := lockFile(file); err != nil {
		owner := lockOwner(path)
		err = errors.Join(err, file.Close())
		if errors.Is(err, errLocked) {
			return nil, fmt.Errorf("the run in %s is %w%s", folder, ErrRunning, owner)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The one who had it may have removed the file in the meantime.
	ours, err := file.Stat()
	named, statErr := os.Stat(path)
	if err != nil || statErr != nil || !os.SameFile(ours, named) {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("lock %s: %w", path, fs.ErrNotExist)
	}
	// The number is only for the message of others; without it the lock holds too.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return file, nil
}

// lockOwner names the process that holds a lock, as far as it is known.
func lockOwner(path string) string {
	data, err := os.ReadFile(filepath.Clean(path))
	if pid, numErr := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && numErr == nil {
		return fmt.Sprintf(" (process %d)", pid)
	}
	return ""
}

// lockRun makes the folder of the journal and locks it for this process.
func (f *Folder) lockRun() error {
	dir := filepath.Join(f.path, journalFolder)
	if err := makeFolder(dir); err != nil {
		return folderError(dir, err)
	}
	lock, err := takeLock(f.path)
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
	segments, err := filepath.Glob(filepath.Join(f.path, journalFolder, "[0-9]*.wal"))
	if err != nil || len(segments) > 0 {
		return errors.Join(err, f.unlock())
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
	if err := removeFile(dir); err != nil {
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

// setAside keeps a file of the journal under a name that is no segment's.
func setAside(path string) error {
	if err := os.Rename(path, path+asideSuffix); err != nil {
		return fmt.Errorf("set a damaged segment aside: %w", err)
	}
	return nil
}

// asideSuffix marks a segment of which something could not be read.
const asideSuffix = ".damaged"
