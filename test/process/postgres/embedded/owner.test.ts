import { mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { nameProcess } from '../../../../src/platform/postgres/embedded/processes.ts'
import { makeFolder, readAnswer, runFixture } from '../../../support/embedded.ts'

// Lets a test act between the moment a claim is read and the moment it is evaluated.
const between = vi.hoisted(() => ({ act: () => {} }))
vi.mock(
  import('../../../../src/platform/postgres/embedded/processes.ts'),
  async (importOriginal) => {
    const real = await importOriginal()
    const isSameProcess = (name: string) => {
      between.act()
      return real.isSameProcess(name)
    }
    return { ...real, isSameProcess }
  },
)

// Test files that ran earlier in this worker have loaded the module without the mock.
vi.resetModules()
const { takeOwnership } = await import('../../../../src/platform/postgres/embedded/owner.ts')

const CLAIMANTS = 4
const ROUNDS = 100
const Answer = z.object({ won: z.array(z.number()) })

describe('the owner of a database folder', { timeout: 60_000 }, () => {
  it('is exactly one of many that claim it at the same moment after its owner died', async () => {
    const root = makeFolder()
    for (let round = 0; round < ROUNDS; round++) {
      mkdirSync(join(root, String(round)))
      symlinkSync('1@long.ago', join(root, String(round), 'postgres.owner-7'))
    }
    // Time for the slowest to load: a late one still competes, only less closely.
    const begin = String(Date.now() + 1_500)
    const claimants = Array.from({ length: CLAIMANTS }, () =>
      runFixture('embedded-claimant', [root, String(ROUNDS), begin]),
    )
    const answers = await Promise.all(claimants.map(readAnswer))
    const won = answers.flatMap((answer) => Answer.parse(answer).won)
    expect(won.sort((a, b) => a - b)).toEqual(Array.from({ length: ROUNDS }, (_, round) => round))
  })

  it('is not a slow process that read a claim which two others have replaced since', () => {
    const folder = makeFolder()
    const claim = (number: number) => join(folder, `postgres.owner-${number}`)
    symlinkSync('1@long.ago', claim(7))
    between.act = () => {
      between.act = () => {}
      symlinkSync(nameProcess(process.pid), claim(9))
      rmSync(claim(7))
    }
    expect(() => takeOwnership(folder)).toThrow('in use')
    expect(readdirSync(folder)).toEqual(['postgres.owner-9'])
  })

  it('is not a later process that was given the same id', () => {
    const folder = makeFolder()
    const [start = ''] = nameProcess(process.pid).split('@').slice(1)
    symlinkSync(`${process.pid}@not-${start}`, join(folder, 'postgres.owner-1'))
    expect(() => takeOwnership(folder)).not.toThrow()
  })

  it('can be replaced after release, and leaves one file however often that happens', () => {
    const folder = makeFolder()
    for (let turn = 0; turn < 5; turn++) {
      const owner = takeOwnership(folder)
      expect(() => takeOwnership(folder)).toThrow(`in use by process ${process.pid}`)
      owner.release()
    }
    expect(readdirSync(folder)).toHaveLength(1)
  })
})
