import type { Guard } from './guard.ts'

const PASS = {
  file: 'src/access/audit-checkpoints.ts',
  test: 'test/api/access/audit-checkpoints.test.ts',
  control: 'a checkpoint has the entries of all accounts, as many as fit, and is a line of the log',
} as const

const VERIFY = {
  test: 'test/api/access/verify-audit.test.ts',
  control: 'an untouched log is intact, also while entries wait for the next checkpoint',
} as const

export const AUDIT: readonly Guard[] = [
  {
    ...PASS,
    text: "const YOUNG = `at between now() - interval '10 minutes'",
    mutation: "const YOUNG = `at between now() - interval '30 seconds'",
    claim:
      'a checkpoint has an entry of a transaction that was open for 60 s, with those committed after it',
  },
  {
    ...PASS,
    text: 'bool_or(${tx.unsafe(YOUNG)}) over (order by id) as waits',
    mutation: '(${tx.unsafe(YOUNG)}) as waits',
    claim:
      'a checkpoint ends before the first entry that is younger than ten minutes, also if older ones follow',
  },
  {
    ...PASS,
    text: '  return turn?.mine === true\n',
    mutation: '  return turn !== undefined\n',
    claim: 'a checkpoint is written by one of two processes at once',
  },
  {
    ...PASS,
    text: '    if (!isGenuine) {',
    mutation: '    if (!isGenuine && oldest.entries < 0) {',
    claim: 'retention makes nothing disappear after a changed time',
  },
  {
    ...PASS,
    text: "    if (!throttle('differing')) return\n",
    mutation: "    throttle('differing')\n",
    claim:
      'retention says in one line what differs, and once more an hour later, although it stays so',
  },
  {
    ...PASS,
    text: '(!start || isStart(encryption, start)) && ',
    mutation: '',
    claim: 'retention makes nothing disappear after a start that it did not sign',
  },
  {
    ...PASS,
    text: 'if (!role?.may || !(await takeTurn(tx))) return 0',
    mutation: 'if (!role || !(await takeTurn(tx))) return 0',
    claim:
      'a role that may only insert and read writes and signs entries, changes none, and leaves retention to another',
  },
  {
    file: 'src/access/audit.ts',
    text: "  runAfterCommit(tx, () => log.info(describe(rows), 'audit entry'))",
    mutation:
      "  if (tx === undefined) runAfterCommit(tx, () => {})\n  log.info(describe(rows), 'audit entry')",
    test: PASS.test,
    claim: 'an entry that is rolled back is no line of the log',
    control: PASS.control,
  },
  {
    ...VERIFY,
    file: 'src/access/audit-checkpoints.ts',
    text: '          if (isSigned(encryption, before, checkpoint)) found',
    mutation: '          if (checkpoint.rows === checkpoint.entries) found',
    claim: "a change of one entry is found: object_id becomes 'object-1'",
  },
  {
    ...VERIFY,
    file: 'src/access/audit-checkpoints.ts',
    text: '          if (!isStart(encryption, checkpoint)) add(',
    mutation: '          if (!isStart(encryption, checkpoint) && checkpoint.rows === 0) add(',
    claim: 'tampering with the log is found: the same with a start that retention did not sign',
  },
  {
    ...VERIFY,
    file: 'src/access/audit-checkpoints.ts',
    text: "[before?.mac.toString('hex') ?? null, upToId",
    mutation: '[before && null, upToId',
    claim: 'tampering with the log is found: the same with the checkpoint',
  },
  {
    file: 'src/access/audit.ts',
    text: 'const text = tryDecodeURIComponent(id).replaceAll',
    mutation: "const text = (tryDecodeURIComponent('') || decodeURIComponent(id)).replaceAll",
    test: 'test/api/access/audit.test.ts',
    claim:
      'a refused write is recorded with the reason by scope, balance, state, or an unknown object',
    control: 'a refused write is recorded with the reason by cap or scope of another key',
  },
  {
    ...PASS,
    text: 'if (!role?.may || !(await takeTurn(tx))) return 0',
    mutation: 'if (!role?.may) return 0',
    claim: 'retention deletes nothing while another process adds or deletes a checkpoint',
  },
]
