import { hashKey } from '../access/keys.ts'
import type { Config } from '../config/config.ts'
import { readSchemaName } from '../db/read-schema-name.ts'
import { computeKeyId } from '../platform/crypto/encryption.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { COMMIT, PACKAGE } from '../version.ts'

/** What runs, for the line that is logged when everything does. Of keys it has the ids, of no secret anything. */
export type StartDescription = {
  version: string
  commit: string | undefined
  /** The newest migration that the database has; undefined if it could not be read. */
  schema: string | undefined
  role: Config['ROLE']
  demo: boolean
  accounts: readonly string[]
  /** The gateway's host, with its port if that is not the usual one. */
  gateway: string
  keyIds: {
    dataEncryption: string
    dataEncryptionPrevious: string | undefined
    /** Of the key of `API_KEY`, as `cli keys list` shows it. */
    api: string | undefined
  }
}

type Started = {
  config: Config
  sql: Sql
  gatewayBaseUrl: string
  /** 32 bytes in Base64. */
  encryptionKey: string
}

/** Describes a start that succeeded. Never rejects: without the database, what it stores is left out. */
export async function describeStart(started: Started): Promise<StartDescription> {
  const { config, sql, gatewayBaseUrl, encryptionKey } = started
  const { DATA_ENCRYPTION_KEY_PREVIOUS: previous } = config
  // The process serves already: a connection that is lost now must not end it.
  const reading = Promise.all([readSchemaName(sql), findKeyId(sql, config.API_KEY)])
  const [schema, api] = await reading.catch(() => [undefined, undefined] as const)
  return {
    version: PACKAGE.version,
    commit: COMMIT,
    schema,
    role: config.ROLE,
    demo: config.demo,
    accounts: config.accounts.map(({ merchantCode }) => merchantCode),
    gateway: new URL(gatewayBaseUrl).host,
    keyIds: {
      dataEncryption: identify(encryptionKey),
      dataEncryptionPrevious: previous === undefined ? undefined : identify(previous),
      api,
    },
  }
}

function identify(key: string): string {
  return computeKeyId(Buffer.from(key, 'base64'))
}

async function findKeyId(sql: Sql, text: string | undefined): Promise<string | undefined> {
  if (text === undefined) return undefined
  const [row] = await sql<{ id: string }[]>`select id from api_keys where hash = ${hashKey(text)}`
  return row?.id
}
