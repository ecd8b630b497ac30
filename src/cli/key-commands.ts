import { type Command, Option } from 'commander'
import { DEFAULT_RATE_PER_MINUTE } from '../access/key-limits.ts'
import { SCOPES } from '../access/keys.ts'
import { listKeys } from '../access/list-keys.ts'
import { readDataKeyConfig } from '../config/config.ts'
import {
  type CreateKeyOptions,
  createNamedKey,
  resealStoredData,
  revokeNamedKey,
  rotateNamedKey,
} from './change-keys.ts'
import { describeEnded } from './describe-ended.ts'
import {
  readCap,
  readCount,
  readDuration,
  readExpiry,
  readName,
  readNetwork,
  readPerson,
  readScopes,
} from './options.ts'
import { presentKeys, showKey, warnOfExpiry } from './present-keys.ts'
import type { RunOnDatabase } from './with-database.ts'

const DAY_S = 86_400

/** Prints data on standard output, and messages on standard error. */
type Print = { print: (text: string) => void; printError: (text: string) => void }
type Json = { json?: true }

/** Adds `keys create | list | rotate | revoke | reseal`. */
export function addKeyCommands(
  program: Command,
  streams: Print,
  onDatabase: RunOnDatabase,
  env?: Readonly<Record<string, string | undefined>>,
): void {
  const keys = program
    .command('keys')
    .description('create, list, rotate and revoke API keys; encrypt stored data again')
  addCreateCommand(keys, streams, onDatabase)
  addListCommand(keys, streams, onDatabase)
  addRotateCommand(keys, streams, onDatabase)
  addRevokeCommand(keys, streams, onDatabase)
  addResealCommand(keys, streams, onDatabase, env)
}

const jsonOption = () => new Option('--json', 'as JSON, for programs')

function addCreateCommand(keys: Command, { print }: Print, onDatabase: RunOnDatabase): void {
  keys
    .command('create')
    .description('create a key; it is shown only once')
    .argument('<name>', 'a name to recognise it by', readName)
    .requiredOption('--scopes <names>', `all, or some of ${SCOPES.join(',')}`, readScopes)
    .requiredOption('--merchant <code>', "the merchant account it can access, '*' for all")
    .option(
      '--refund-max <amounts>',
      'the largest single refund, 500000 or by currency VND:500000,USD:20',
      readCap,
    )
    .option(
      '--refund-daily-max <amounts>',
      'the most refunded in a day of CAPS_TIME_ZONE, also by currency',
      readCap,
    )
    .option(
      '--person <name>',
      'whose key it is; the keys of one person do not approve the refunds of each other',
      readPerson,
    )
    .option('--rate <n>', `requests per minute; ${DEFAULT_RATE_PER_MINUTE} if left out`, readCount)
    .option(
      '--expires <when>',
      'after a duration (90d, 12h) or at a time (2027-01-31T00:00:00Z)',
      readExpiry,
    )
    .option(
      '--network <cidr>',
      'a network that it may be used from, repeatable; any if left out',
      readNetwork,
    )
    .addOption(jsonOption())
    .action(async (name: string, options: CreateKeyOptions & Json) => {
      const created = await onDatabase((sql) => createNamedKey(sql, name, options))
      print(options.json ? formatJson(created) : presentKey(created.key, `${created.id}  ${name}`))
    })
}

function addListCommand(
  keys: Command,
  { print, printError }: Print,
  onDatabase: RunOnDatabase,
): void {
  keys
    .command('list')
    .description('list all keys, newest first, without their text')
    .addOption(jsonOption())
    .action(async (options: Json) => {
      const rows = (await onDatabase((sql) => listKeys(sql))).map(showKey)
      print(options.json ? formatJson(rows) : presentKeys(rows))
      printError(warnOfExpiry(rows))
    })
}

function addRotateCommand(keys: Command, { print }: Print, onDatabase: RunOnDatabase): void {
  keys
    .command('rotate')
    .description('replace a key; both keys are valid for the grace period')
    .argument('<key>', 'its id, or its name if only one live key has it')
    .option('--grace <duration>', 'how long the old key stays valid', readDuration, DAY_S)
    .addOption(jsonOption())
    .action(async (ref: string, { grace, json }: Json & { grace: number }) => {
      const { key, id, oldId, oldEndsAt } = await onDatabase((sql) =>
        rotateNamedKey(sql, ref, grace),
      )
      const result = { id, key, replaces: oldId, oldKeyEndsAt: oldEndsAt }
      print(json ? formatJson(result) : presentKey(key, `${id}, replacing ${oldId}`, oldEndsAt))
    })
}

function addRevokeCommand(keys: Command, { print }: Print, onDatabase: RunOnDatabase): void {
  keys
    .command('revoke')
    .description('revoke a key now, and end its webhook endpoints')
    .argument('<key>', 'its id, or its name if only one live key has it')
    .addOption(jsonOption())
    .action(async (ref: string, { json }: Json) => {
      const { id, wasLive, endpoints } = await onDatabase((sql) => revokeNamedKey(sql, ref))
      const result = wasLive
        ? 'is revoked: writes are refused from now on, reads within a second'
        : 'was already revoked'
      const text = `${id} ${result}\n${describeEnded(endpoints)}`
      print(json ? formatJson({ id, revoked: true, endpoints }) : text)
    })
}

function addResealCommand(
  keys: Command,
  { print }: Print,
  onDatabase: RunOnDatabase,
  env: Readonly<Record<string, string | undefined>> | undefined,
): void {
  keys
    .command('reseal')
    .description('encrypt all stored receivers and webhook secrets under DATA_ENCRYPTION_KEY')
    .addOption(jsonOption())
    .action(async (options: Json) => {
      const roots = readDataKeyConfig(env)
      const done = await onDatabase((sql) => resealStoredData(sql, roots))
      const { receivers, events, endpoints, unreadable } = done
      const text = `encrypted again: ${receivers} receivers, ${events} events, ${endpoints} webhook secrets; ${unreadable} unreadable\n`
      print(options.json ? formatJson(done) : text)
    })
}

function presentKey(key: string, description: string, oldEndsAt?: string): string {
  const old = oldEndsAt === undefined ? '' : `The old key is valid until ${oldEndsAt}.\n`
  return `${key}\n\nThis is the key ${description}. Copy it now: only its hash is stored, so it cannot be shown again.\n${old}`
}

function formatJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
