import type { Guard } from './guard.ts'

const EXPORT = 'test/process/cli/export.test.ts'
const REQUEUE = 'test/process/cli/requeue.test.ts'
const WRONG_PLACE = 'to a file refuses a folder that is not there, and a place that is none'
const WRONG_USE = 'requeue refuses no filter, and changes nothing'

export const COMMAND_LINE: readonly Guard[] = [
  {
    file: 'src/cli/database.ts',
    text: 'if (known.includes(only)) return [only]',
    mutation: 'if (known.includes(only)) return known',
    test: REQUEUE,
    claim: 'requeue makes those of a filter due, and leaves other accounts alone',
    control: WRONG_USE,
  },
  {
    file: 'src/cli/requeue.ts',
    text: "requireOnly(found, 'transaction', id)",
    mutation: "requireOnly(found.slice(0, 1), 'transaction', id)",
    test: REQUEUE,
    claim: 'requeue refuses an id of two accounts, and changes nothing',
    control: WRONG_USE,
  },
  {
    file: 'src/cli/requeue.ts',
    text: '!dryRun && !isRefused && ',
    mutation: '!isRefused && ',
    test: REQUEUE,
    claim: 'requeue finds those of a time; a dry run only counts them',
    control: WRONG_USE,
  },
  {
    file: 'src/cli/print.ts',
    text: 'count <= MOST_UNASKED || yes',
    mutation: 'count <= 10 * MOST_UNASKED || yes',
    test: REQUEUE,
    claim: 'requeue of more than 1,000 wants --yes where nobody can be asked',
    control: WRONG_USE,
  },
  {
    file: 'src/cli/run.ts',
    text: 'mayAsk && input.isTTY === true',
    mutation: 'input.isTTY === (mayAsk || true)',
    test: REQUEUE,
    claim: 'requeue of more than 1,000 asks on a terminal, but not with --no-input',
    control: WRONG_USE,
  },
  {
    file: 'src/cli/reconcile.ts',
    text: "await requireWorker(sql, 'nothing was changed')",
    mutation: 'await Promise.resolve()',
    test: 'test/process/cli/reconcile.test.ts',
    claim: 'reconcile without a worker stops with a clear line, and has changed nothing',
    control: 'reconcile exits with 2 and the right spelling for no time',
  },
  {
    file: 'src/cli/export-file.ts',
    text: 'fs.ftruncateSync(handle, place.bytes)',
    mutation: 'fs.ftruncateSync(handle, fs.fstatSync(handle).size)',
    test: EXPORT,
    claim: 'to a file goes on where it was cut off, with each row once, and then keeps no place',
    control: WRONG_PLACE,
  },
  {
    file: 'src/cli/export-file.ts',
    text: 'if (next.cursor === null) return',
    mutation: '',
    test: EXPORT,
    claim: 'to a file saves its place after each page, and none behind the last one',
    control: WRONG_PLACE,
  },
  {
    file: 'src/cli/export-file.ts',
    text: 'if (saved && saved.of !== of) {',
    mutation: "if (saved && saved.of === '') {",
    test: EXPORT,
    claim: 'to a file refuses to go on with another filter',
    control: WRONG_PLACE,
  },
  {
    file: 'src/cli/export.ts',
    text: 'selectEvents(on.sql, filter, Number(start), PAGE)',
    mutation: 'selectEvents(on.sql, filter, cursor ? Number(start) : undefined, PAGE)',
    test: EXPORT,
    claim: 'events from before a confirmed restore are written as well as those since',
    control: WRONG_PLACE,
  },
  {
    file: 'src/cli/requeue.ts',
    text: '({ merchantCode }) => codes.includes(merchantCode))',
    mutation: '({ merchantCode }) => codes.includes(merchantCode) || true)',
    test: 'test/process/cli/reconcile.test.ts',
    claim: 'reconcile skips an account that left the settings, says so, and ends',
    control: 'reconcile exits with 2 and the right spelling for no time',
  },
  {
    file: 'src/health/gauges.ts',
    text: 'now() and merchant_code = any($1)',
    mutation: 'now() and (merchant_code = any($1) or true)',
    test: 'test/api/health/routes.test.ts',
    claim: 'metrics show how many transactions are due and the age of the oldest',
    control: 'metrics count the waiting readers',
  },
  {
    file: 'src/health/gauges.ts',
    text: 'and t.merchant_code = any($1)',
    mutation: 'and (t.merchant_code = any($1) or true)',
    test: 'test/api/health/routes.test.ts',
    claim: 'metrics show how many transactions are due and the age of the oldest',
    control: 'metrics count the waiting readers',
  },
  {
    file: 'src/health/overview.ts',
    text: 'where a.merchant_code = any(${listMerchantCodes(config)}::text[])',
    mutation: 'where a.merchant_code = any(${listMerchantCodes(config)}::text[]) or true',
    test: 'test/process/cli/doctor.test.ts',
    claim: 'names an account that was removed while work of it waits',
    control: 'names a setting that is wrong, and examines nothing else',
  },
  {
    file: 'src/cli/examine-work.ts',
    text: 'and t.lease_id is not null and t.lease_owner is not null',
    mutation: 'and t.lease_owner is not null',
    test: 'test/process/cli/doctor.test.ts',
    claim: 'names what has been waiting for too long, and claims of a process that died',
    control: 'names a setting that is wrong, and examines nothing else',
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
