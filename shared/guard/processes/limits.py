"""How much a command may take, of what the kernel counts."""

PROCESSES = 512  # of one command, by the limit per user
TOGETHER = 2048  # of all commands together, by the control group
DATA_BYTES = 4 * 1024**3  # of one process; RLIMIT_AS would break programs that only reserve much
MEMORY_SHARE = 0.75  # of the machine's memory, of all commands together, by the control group
FILE_BYTES = 2 * 1024**3  # of one file
TMP_BYTES = 1024**3
SHM_BYTES = 256 * 1024**2
RESERVE_BYTES = 1024**3  # of the disk, which no command takes: the journal needs it
RESERVE_SHARE = 0.05  # of a disk that is small
RESERVE_FILES = 20_000
