import { type Command, InvalidArgumentError } from 'commander'
import { rechain } from '../audit-chain/rechain.ts'
import type { NotedHead } from '../audit-chain/verify-chain.ts'
import { type Verification, verifyChains } from '../audit-chain/verify-chains.ts'
import { readDataKeyConfig } from '../config/config.ts'
import { openDataKeys } from '../db/data-keys.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import { recordChange } from './change-keys.ts'
import { describeVerification, formatVerification } from './format-verification.ts'
import { UsageError } from './usage-error.ts'
import type { RunOnDatabase } from './with-database.ts'

/** What the commands read and write. */
export type AuditStreams = {
  print: (text: string) => void
  printError: (text: string) => void
  env: Readonly<Record<string, string | undefined>> | undefined
  onDatabase: RunOnDatabase
  setExitCode: (code: number) => void
}

type VerifyOptions = { merchant?: string; head?: NotedHead; json?: true }

/** Adds `audit verify`, with exit code 1 after a finding, and `audit rechain`. */
export function addAuditChainCommands(audit: Command, streams: AuditStreams): void {
  addVerify(audit, streams)
  addRechain(audit, streams)
}

function addVerify(
  audit: Command,
  { print, printError, env, onDatabase, setExitCode }: AuditStreams,
): void {
  audit
    .command('verify')
    .description('check that no audit entry was changed, deleted or added; exit code 0 or 1')
    .option('--merchant <code>', "only this account; '*' for the entries without one")
    .option(
      '--head <position:hash>',
      'a head of this account from the log or the metrics, which the chain must contain',
      readHead,
    )
    .option('--json', 'as JSON, for programs')
    .action(async (_: unknown, command: Command) => {
      const { merchant: merchantCode, head: noted, json } = command.optsWithGlobals<VerifyOptions>()
      if (noted && merchantCode === undefined) {
        throw new UsageError('--head is the head of one account; name it with --merchant')
      }
      const roots = readDataKeyConfig(env)
      const found = await onDatabase(async (sql) =>
        verifyChains(sql, await openDataKeys(sql, roots), { merchantCode, noted }),
      )
      refuseUnknown(found, merchantCode, noted)
      print(json ? `${JSON.stringify(found, null, 2)}\n` : formatVerification(found))
      const { text, isIntact } = describeVerification(found)
      printError(`${text}\n`)
      if (!isIntact) setExitCode(1)
    })
}

/** @throws UsageError if nothing could be verified that was asked for */
function refuseUnknown(
  { chains }: Verification,
  merchantCode: string | undefined,
  noted: NotedHead | undefined,
): void {
  if (merchantCode === undefined) return
  const [chain] = chains
  if (!chain && !noted) throw new UsageError(`the account ${merchantCode} has no audit chain yet`)
  if (chain && noted && noted.position < chain.startPosition) {
    throw new UsageError(
      `the noted head is older than the entries that are kept: they begin after position ${chain.startPosition}`,
    )
  }
}

function addRechain(audit: Command, { print, env, onDatabase }: AuditStreams): void {
  audit
    .command('rechain')
    .description(
      'after a finding was investigated: chain the entries of an account anew, as they are now',
    )
    .requiredOption('--merchant <code>', "the account; '*' for the entries without one")
    .action(async (_: unknown, command: Command) => {
      const { merchant = '' } = command.optsWithGlobals<VerifyOptions>()
      const roots = readDataKeyConfig(env)
      const position = await onDatabase(async (sql) => {
        const encryption = await openDataKeys(sql, roots)
        return await runInTransaction(sql, async (tx) => {
          await recordChange(tx, 'audit rechain', merchant, null)
          const after = await rechain(tx, encryption, merchant)
          if (after === undefined)
            throw new UsageError(`the account ${merchant} has no audit chain`)
          return after
        })
      })
      print(
        `The new chain of ${merchant} starts after position ${position}; a worker appends the entries.\n`,
      )
    })
}

/** Parses `1234:9f86d081884c…`. @throws InvalidArgumentError */
function readHead(text: string): NotedHead {
  const [, position = '', hash = ''] = /^(\d{1,15}):([0-9a-f]{12,64})$/i.exec(text) ?? []
  if (hash !== '') return { position: Number(position), hash: hash.toLowerCase() }
  throw new InvalidArgumentError(
    'Write a position and at least 12 hexadecimal digits of the hash, as 1234:9f86d081884c.',
  )
}
