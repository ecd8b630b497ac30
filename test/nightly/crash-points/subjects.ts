import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { syncDue } from '../../../src/sync/sync-due.ts'
import type { SyncContext } from '../../../src/sync/types.ts'
import { settingsFor } from '../../support/process.ts'
import { startTestService } from '../../support/service.ts'
import type { Lines, Stage } from './stage.ts'

/** The process that a fault happens to. */
export type Subject = {
  lines: Lines
  /** The address of its API. */
  url: string
  /** Runs one round of the sync; resolves when it has ended, or the process has. */
  runRound(): Promise<void>
  /** Whether it outlives the fault: then it still records the answer that it has received. */
  livesOn: boolean
  /** What happens to it before its connection is reset. */
  strike(): Promise<void>
  /** What takes up its work afterwards. */
  successor: { url: string; ctx: SyncContext }
}

/** What happens at a point, and to whom. */
export type Accident = {
  name: 'connection lost' | 'kill -9'
  /** Plays without a fault before the points are known: the first of a process differs from its later ones. */
  rehearsals: number
  /** Prepares the subjects of one play. */
  prepare(stage: Stage, workerFile: string): Promise<Subjects>
}

/** Gives the subject of the next point. */
export type Subjects = { next(): Promise<Subject> }

/** One process lives through all points, and takes up its own work. */
export const CONNECTION_LOST: Accident = {
  name: 'connection lost',
  rehearsals: 2,
  async prepare(stage) {
    const lines = await stage.openLines()
    const { settings } = stage
    const database = { url: lines.database.url }
    const service = await startTestService(database, lines.gateway.url, { settings })
    onTestFinished(async () => {
      await service.stop()
      await lines.stop()
    })
    const subject: Subject = {
      lines,
      url: service.url,
      // A round whose claim fails is logged by its loop.
      runRound: () => syncDue(service.ctx).then(forget, forget),
      livesOn: true,
      strike: async () => {},
      successor: service,
    }
    return { next: async () => subject }
  },
}

function forget(): void {}

/** Each point has a process of its own, which is killed; another takes up its work. */
export const KILLED: Accident = {
  name: 'kill -9',
  rehearsals: 1,
  async prepare(stage, workerFile) {
    const workers: Promise<Worker>[] = []
    const start = () => {
      const worker = startWorker(stage, workerFile)
      // Its error is thrown where it is awaited.
      worker.catch(forget)
      workers.push(worker)
    }
    onTestFinished(async () => {
      for (const worker of workers) await worker.then(({ stop }) => stop(), forget)
    })
    start()
    return {
      async next() {
        const worker = await workers.at(-1)
        if (!worker) throw new Error('no worker was started')
        // The next one starts while this one's point is played.
        start()
        return worker
      },
    }
  },
}

type Worker = Subject & { stop(): Promise<void> }

const Ready = z.object({ url: z.string() })

async function startWorker(stage: Stage, file: string): Promise<Worker> {
  const lines = await stage.openLines()
  const child = spawn(process.execPath, [file], {
    env: {
      PATH: process.env.PATH,
      ...settingsFor(lines.database.url, lines.gateway.url),
      ...stage.settings,
      LOG_LEVEL: 'silent',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  const answers = createInterface(child.stdout)
  const next = () => Promise.race([once(answers, 'line'), exited])
  try {
    const [line] = await next()
    if (child.exitCode !== null) throw new Error(`the worker ended with ${child.exitCode}`)
    const { url } = Ready.parse(JSON.parse(String(line)))
    return {
      lines,
      url,
      async runRound() {
        const ended = next()
        child.stdin.write('\n')
        await ended
      },
      livesOn: false,
      strike: kill,
      successor: stage.lab.service,
      async stop() {
        await kill()
        await lines.stop()
      },
    }
  } catch (error) {
    await kill()
    await lines.stop()
    throw error
  }
}
