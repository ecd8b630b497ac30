import { type Guard, guards } from './guard.ts'

const PASS = {
  file: 'src/access/audit-checkpoints.ts',
  test: 'test/api/access/audit-checkpoints.test.ts',
  control: 'a checkpoint has the entries of all accounts, as many as fit, and is a line of the log',
} as const

export const AUDIT: readonly Guard[] = [
  ...guards(
    {
      file: 'src/access/audit-checkpoints.ts',
      test: 'test/api/access/audit-checkpoints.test.ts',
      control:
        'a checkpoint has the entries of all accounts, as many as fit, and is a line of the log',
    },
    [
      {
        text: "const YOUNG = `at between now() - interval '10 minutes'",
        mutation: "const YOUNG = `at between now() - interval '30 seconds'",
        claim:
          'a checkpoint has an entry of a transaction that was open for 60 s, with those committed after it',
      },
      {
        text: 'bool_or(${tx.unsafe(YOUNG)}) over (order by id) as waits',
        mutation: '(${tx.unsafe(YOUNG)}) as waits',
        claim:
          'a checkpoint ends before the first entry that is younger than ten minutes, also if older ones follow',
      },
      {
        text: '  return turn?.mine === true\n',
        mutation: '  return turn !== undefined\n',
        claim: 'a checkpoint is written by one of two processes at once',
      },
      {
        text: '    if (!isGenuine) {',
        mutation: '    if (!isGenuine && oldest.entries < 0) {',
        claim: 'retention makes nothing disappear after a changed time',
      },
      {
        text: "    if (!throttle('differing')) return\n",
        mutation: "    throttle('differing')\n",
        claim:
          'retention says in one line what differs, and once more an hour later, although it stays so',
      },
      {
        text: '(!start || isStart(encryption, start)) && ',
        mutation: '',
        claim: 'retention makes nothing disappear after a start that it did not sign',
      },
      {
        text: 'if (!role?.may || !(await takeTurn(tx))) return 0',
        mutation: 'if (!role || !(await takeTurn(tx))) return 0',
        claim:
          'a role that may only insert and read writes and signs entries, changes none, and leaves retention to another',
      },
    ],
  ),
  ...guards({ file: 'src/access/audit.ts', test: PASS.test, control: PASS.control }, [
    {
      text: '  runAfterCommit(tx, () => void statement.then(write, () => {}))',
      mutation:
        '  if (tx === undefined) runAfterCommit(tx, () => {})\n  void statement.then(write, () => {})',
      claim: 'an entry that is rolled back is no line of the log',
    },
  ]),
  ...guards({ file: 'src/access/audit-checkpoints.ts' }, [
    {
      text: '          if (isSigned(encryption, before, checkpoint)) found',
      mutation: '          if (checkpoint.rows === checkpoint.entries) found',
      test: 'test/api/access/verify-audit.test.ts',
      claim: "a change of one entry is found: object_id becomes 'object-1'",
      control: 'an untouched log is intact, also while entries wait for the next checkpoint',
    },
    {
      text: '          if (!isStart(encryption, checkpoint)) add(',
      mutation: '          if (!isStart(encryption, checkpoint) && checkpoint.rows === 0) add(',
      test: 'test/api/access/verify-audit.test.ts',
      claim: 'tampering with the log is found: the same with a start that retention did not sign',
      control: 'an untouched log is intact, also while entries wait for the next checkpoint',
    },
    {
      text: "[before?.mac.toString('hex') ?? null, upToId",
      mutation: '[before && null, upToId',
      test: 'test/api/access/verify-audit.test.ts',
      claim: 'tampering with the log is found: the same with the checkpoint',
      control: 'an untouched log is intact, also while entries wait for the next checkpoint',
    },
  ]),
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
    file: 'src/access/audit-checkpoints.ts',
    text: 'if (!role?.may || !(await takeTurn(tx))) return 0',
    mutation: 'if (!role?.may) return 0',
    test: 'test/api/access/audit-checkpoints.test.ts',
    claim: 'retention deletes nothing while another process adds or deletes a checkpoint',
    control:
      'a checkpoint has the entries of all accounts, as many as fit, and is a line of the log',
  },
]
