import { type Guard, guards } from './guard.ts'

const EXPORT = 'test/process/cli/export.test.ts'
const REQUEUE = 'test/process/cli/requeue.test.ts'
const WRONG_PLACE = 'to a file refuses a folder that is not there, and a place that is none'
const WRONG_USE = 'requeue refuses no filter, and changes nothing'

export const COMMAND_LINE: readonly Guard[] = [
  {
    file: 'src/cli/database.ts',
    text: '    return await whileSought(keys, open)\n',
    mutation: '    throw error\n',
    test: 'test/process/cli/export.test.ts',
    claim: 'what is sealed under a data key that is lost does not end the export of events',
    control: 'needs the key of the service for what is encrypted, and for nothing else',
  },
  ...guards({ file: 'src/cli/database.ts', test: REQUEUE, control: WRONG_USE }, [
    {
      text: 'if (known.includes(only)) return [only]',
      mutation: 'if (known.includes(only)) return known',
      claim: 'requeue makes those of a filter due, and leaves other accounts alone',
    },
  ]),
  {
    file: 'src/cli/database.ts',
    text: 'if (!(await hasInstallation(pool.sql))) {',
    mutation: 'if (await hasInstallation(pool.sql)) {',
    test: 'test/process/cli/keys.test.ts',
    claim:
      'a command that cannot run prints one line with exit code 2, and changes nothing a missing, unreachable, refusing, empty or invalid database',
    control:
      'a command that cannot run prints one line with exit code 2, and changes nothing no scopes',
  },
  {
    file: 'src/cli/doctor.ts',
    text: "        if (id === 'schema' && found.some(({ action }) => action)) return\n",
    mutation: '',
    test: 'test/process/cli/doctor.test.ts',
    claim: 'names a schema that holds no installation, and examines nothing else',
    control: 'names a setting that is wrong, and examines nothing else',
  },
  ...guards({ test: REQUEUE, control: WRONG_USE }, [
    {
      file: 'src/cli/requeue.ts',
      text: "requireOnly(found, 'transaction', id)",
      mutation: "requireOnly(found.slice(0, 1), 'transaction', id)",
      claim: 'requeue refuses an id of two accounts, and changes nothing',
    },
    {
      file: 'src/cli/requeue.ts',
      text: '!dryRun && !isRefused && ',
      mutation: '!isRefused && ',
      claim: 'requeue finds those of a time; a dry run only counts them',
    },
    {
      file: 'src/cli/print.ts',
      text: 'count <= MOST_UNASKED || yes',
      mutation: 'count <= 10 * MOST_UNASKED || yes',
      claim: 'requeue of more than 1,000 wants --yes where nobody can be asked',
    },
    {
      file: 'src/cli/run.ts',
      text: 'mayAsk && input.isTTY === true',
      mutation: 'input.isTTY === (mayAsk || true)',
      claim: 'requeue of more than 1,000 asks on a terminal, but not with --no-input',
    },
  ]),
  {
    file: 'src/cli/reconcile.ts',
    text: "await requireWorker(sql, 'nothing was changed')",
    mutation: 'await Promise.resolve()',
    test: 'test/process/cli/reconcile.test.ts',
    claim: 'reconcile without a worker stops with a clear line, and has changed nothing',
    control: 'reconcile exits with 2 and the right spelling for no time',
  },
  ...guards({ file: 'src/cli/reconcile.ts', test: 'test/process/cli/reconcile.test.ts' }, [
    {
      text: ' or t.want <> t.claimed',
      mutation: '',
      claim:
        'reconcile without a worker does not take a call that a clock dated which has gone back since for the one that it asks for',
      control: 'reconcile exits with 2 and the right spelling for no time',
    },
    {
      text: 'where g.sent_at is null or',
      mutation: 'where',
      claim:
        'reconcile without a worker does not take a transaction for asked whose claim was handed back without a call',
      control: 'reconcile exits with 2 and the right spelling for no time',
    },
  ]),
  {
    file: 'src/discrepancies/store.ts',
    text: 'coalesce(last_seen_at, at) >= ${',
    mutation: 'at >= ${',
    test: 'test/process/cli/reconcile.test.ts',
    claim: 'reconcile reports a discrepancy that was resolved and is seen again',
    control: 'reconcile exits with 2 and the right spelling for no time',
  },
  ...guards({ file: 'src/cli/export-file.ts', test: EXPORT, control: WRONG_PLACE }, [
    {
      text: 'fs.ftruncateSync(handle, place.bytes)',
      mutation: 'fs.ftruncateSync(handle, fs.fstatSync(handle).size)',
      claim: 'to a file goes on where it was cut off, with each row once, and then keeps no place',
    },
    {
      text: 'if (next.cursor === null) return',
      mutation: '',
      claim: 'to a file saves its place after each page, and none behind the last one',
    },
    {
      text: 'if (saved && saved.of !== of) {',
      mutation: "if (saved && saved.of === '') {",
      claim: 'to a file refuses to go on with another filter',
    },
  ]),
  ...guards({ file: 'src/cli/export.ts', test: EXPORT, control: WRONG_PLACE }, [
    {
      text: 'selectEvents(sql, filter, Number(start), PAGE)',
      mutation: 'selectEvents(sql, filter, cursor ? Number(start) : undefined, PAGE)',
      claim: 'events from before a confirmed restore are written as well as those since',
    },
  ]),
  {
    file: 'src/cli/requeue.ts',
    text: '({ merchantCode }) => codes.includes(merchantCode))',
    mutation: '({ merchantCode }) => codes.includes(merchantCode) || true)',
    test: 'test/process/cli/reconcile.test.ts',
    claim: 'reconcile skips an account that left the settings, says so, and ends',
    control: 'reconcile exits with 2 and the right spelling for no time',
  },
  ...guards({ file: 'src/health/gauges.ts', test: 'test/api/health/routes.test.ts' }, [
    {
      text: 'now() and merchant_code = any($1)',
      mutation: 'now() and (merchant_code = any($1) or true)',
      claim: 'metrics show how many transactions are due and the age of the oldest',
      control: 'metrics count the waiting readers',
    },
    {
      text: 'and t.merchant_code = any($1)',
      mutation: 'and (t.merchant_code = any($1) or true)',
      claim: 'metrics show how many transactions are due and the age of the oldest',
      control: 'metrics count the waiting readers',
    },
  ]),
  ...guards({ test: 'test/process/cli/doctor.test.ts' }, [
    {
      file: 'src/health/overview.ts',
      text: 'where a.merchant_code = any(${configured}::text[])',
      mutation: 'where a.merchant_code = any(${configured}::text[]) or true',
      claim: 'names an account that was removed while work of it waits',
      control: 'names a setting that is wrong, and examines nothing else',
    },
    {
      file: 'src/cli/examine-work.ts',
      text: 'and t.lease_id is not null and t.lease_owner is not null',
      mutation: 'and t.lease_owner is not null',
      claim: 'names what has been waiting for too long, and claims of a process that died',
      control: 'names a setting that is wrong, and examines nothing else',
    },
    {
      file: 'src/cli/doctor.ts',
      text: 'judge(url.detail, action)',
      mutation: 'judge(`${url.detail}; ${action}`, false)',
      claim: 'names an embedded database that the start starts, and what was not examined',
      control: 'names a setting that is wrong, and examines nothing else',
    },
  ]),
  {
    file: 'src/main.ts',
    text: "if (error.code !== 'EPIPE') throw error",
    mutation: 'throw error',
    test: 'test/process/start/check.test.ts',
    claim: 'the output may be read in part, as by head: the check ends as it would',
    control: 'the output is a line for each finding',
  },
  {
    file: 'src/cli/keys.ts',
    text: 'import { command, RefusedError }',
    mutation: 'import { command, UsageError as RefusedError }',
    test: 'test/process/cli/keys.test.ts',
    claim:
      'a change of a key that is refused exits with 1, and changes nothing, of a key that has ended',
    control:
      'a command that cannot run prints one line with exit code 2, and changes nothing no scopes',
  },
]
