import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { createKey, type NewKey, revokeKey, rotateKey } from '../access/key-changes.ts'
import { DEFAULT_RATE_PER_MINUTE } from '../access/key-use.ts'
import { EVERY_MERCHANT, SCOPES, type Scope } from '../access/keys.ts'
import { readDataKeyConfig } from '../config/config.ts'
import { addSealKey, openDataKeys } from '../db/data-keys.ts'
import { resealData } from '../maintenance/reseal.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { endEndpoints } from '../webhooks/endpoints.ts'
import { recordChange, requireMerchant } from './database.ts'
import { addListCommand, type ListedKey, listKeys } from './key-list.ts'
import {
  type Cap,
  type Json,
  jsonOption,
  readCap,
  readCount,
  readDuration,
  readExpiry,
  readName,
  readNetwork,
  readPerson,
  readScopes,
  UsageError,
} from './options.ts'
import { type Cli, describeEnded } from './print.ts'

const DAY_S = 86_400

type CreateKeyOptions = {
  scopes: Scope[]
  merchant: string
  refundMax?: Cap
  refundDailyMax?: Cap
  rate?: number
  person?: string
  expires?: string
  network?: string[]
}

export function addKeyCommands(program: Command, cli: Cli): void {
  const keys = program
    .command('keys')
    .description('create, list, rotate and revoke API keys; encrypt stored data again')
  addCreateCommand(keys, cli)
  addListCommand(keys, cli)
  addRotateCommand(keys, cli)
  addRevokeCommand(keys, cli)
  addResealCommand(keys, cli)
}

function addCreateCommand(keys: Command, cli: Cli): void {
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
      const created = await cli.change((tx) => createNamedKey(cli, tx, name, options))
      cli.emit(options.json, created, presentKey(created.key, `${created.id}  ${name}`))
    })
}

function addRotateCommand(keys: Command, cli: Cli): void {
  keys
    .command('rotate')
    .description('replace a key; both keys are valid for the grace period')
    .argument('<key>', 'its id, or its name if only one live key has it')
    .option('--grace <duration>', 'how long the old key stays valid', readDuration, DAY_S)
    .addOption(jsonOption())
    .action(async (ref: string, { grace, json }: Json & { grace: number }) => {
      const { key, id, oldId, oldEndsAt } = await cli.change((tx) =>
        rotateNamedKey(cli, tx, ref, grace),
      )
      const result = { id, key, replaces: oldId, oldKeyEndsAt: oldEndsAt }
      cli.emit(json, result, presentKey(key, `${id}, replacing ${oldId}`, oldEndsAt))
    })
}

function addRevokeCommand(keys: Command, cli: Cli): void {
  keys
    .command('revoke')
    .description('revoke a key now, and end its webhook endpoints')
    .argument('<key>', 'its id, or its name if only one live key has it')
    .addOption(jsonOption())
    .action(async (ref: string, { json }: Json) => {
      const { id, wasLive, endpoints } = await cli.change((tx) => revokeNamedKey(cli, tx, ref))
      const result = wasLive
        ? 'is revoked: writes are refused from now on, reads within a second'
        : 'was already revoked'
      const text = `${id} ${result}\n${describeEnded(endpoints)}`
      cli.emit(json, { id, revoked: true, endpoints }, text)
    })
}

function addResealCommand(keys: Command, cli: Cli): void {
  keys
    .command('reseal')
    .description('encrypt all stored receivers and webhook secrets again, under a fresh key')
    .addOption(jsonOption())
    .action(async ({ json }: Json) => {
      const roots = readDataKeyConfig(cli.env)
      const done = await cli.onDatabase(async (sql) => {
        const isInUse = await addSealKey(sql, roots)
        const keys = await openDataKeys(sql, roots)
        await runInTransaction(sql, (tx) =>
          recordChange(cli, tx, 'keys reseal', EVERY_MERCHANT, null),
        )
        cli.printError('a fresh key is stored; every process has a minute to read it\n')
        while (!(await isInUse())) await pause(500)
        await keys.reread()
        return await resealData(sql, keys)
      })
      const { receivers, events, endpoints, unreadable } = done
      const text = `encrypted again: ${receivers} receivers, ${events} events, ${endpoints} webhook secrets; ${unreadable} unreadable\n`
      cli.emit(json, done, text)
    })
}

function presentKey(key: string, description: string, oldEndsAt?: string): string {
  const old = oldEndsAt === undefined ? '' : `The old key is valid until ${oldEndsAt}.\n`
  return `${key}\n\nThis is the key ${description}. Copy it now: only its hash is stored, so it cannot be shown again.\n${old}`
}

/** Creates a key. @throws UsageError if the account does not exist */
async function createNamedKey(cli: Cli, tx: Tx, name: string, options: CreateKeyOptions) {
  await requireMerchant(tx, options.merchant)
  const newKey: NewKey = {
    name,
    scopes: options.scopes,
    merchantCode: options.merchant,
    refundMax: getAmount(options.refundMax),
    refundDailyMax: getAmount(options.refundDailyMax),
    refundMaxByCurrency: getByCurrency(options.refundMax),
    refundDailyMaxByCurrency: getByCurrency(options.refundDailyMax),
    ratePerMinute: options.rate ?? null,
    networks: options.network ?? null,
    person: options.person ?? null,
    expiresAt: options.expires ?? null,
  }
  const { id, text: key } = await createKey(tx, newKey)
  await recordChange(cli, tx, 'keys create', options.merchant, id)
  return { id, key, ...newKey }
}

const getAmount = (cap: Cap | undefined) => (typeof cap === 'string' ? cap : null)
const getByCurrency = (cap: Cap | undefined) => (typeof cap === 'object' ? cap : null)

const NOT_ROTATED = {
  not_live: 'the key is expired or revoked and cannot be rotated; create a new one',
  of_setting:
    'this is the key of the setting API_KEY: set another text and restart; the key before it ends after API_KEY_GRACE_MS',
}

/** Rotates a key. @throws UsageError if the key does not exist, is not live or was already rotated */
async function rotateNamedKey(cli: Cli, tx: Tx, ref: string, graceS: number) {
  const { id: oldId, merchantCode } = await findKey(tx, ref)
  const rotation = await rotateKey(tx, oldId, graceS)
  if (rotation.kind === 'already_rotated') {
    throw new UsageError(`the key was already rotated; its successor is ${rotation.successorId}`)
  }
  if (rotation.kind !== 'rotated') throw new UsageError(NOT_ROTATED[rotation.kind])
  const { id, text: key } = rotation.created
  await recordChange(cli, tx, 'keys rotate', merchantCode, oldId)
  await recordChange(cli, tx, 'keys rotate', merchantCode, id)
  return { id, key, oldId, oldEndsAt: toIso(rotation.oldEndsAt) }
}

/** Revokes a key, and ends the webhook endpoints that belong to it. @throws UsageError if the key does not exist */
async function revokeNamedKey(cli: Cli, tx: Tx, ref: string) {
  const { id, merchantCode } = await findKey(tx, ref)
  const wasLive = await revokeKey(tx, id)
  if (wasLive) await recordChange(cli, tx, 'keys revoke', merchantCode, id)
  return { id, wasLive, endpoints: await endEndpoints(tx, id) }
}

/** @param ref an id or a name. It is never printed: by mistake it could be the key itself. */
async function findKey(tx: Tx, ref: string): Promise<ListedKey> {
  const all = await listKeys(tx)
  const byId = all.find(({ id }) => id === ref.toLowerCase())
  const [byName, second] = all.filter(({ name, state }) => name === ref && state === 'live')
  if (second && !byId)
    throw new UsageError('several live keys have this name; use the id of one of them')
  const found = byId ?? byName
  if (!found)
    throw new UsageError('no key has this id and no live key has this name; see keys list')
  return found
}
