import { Card } from '../../platform/html/components.tsx'
import { Time } from '../cells.tsx'
import { storyPath } from '../paths.ts'
import { t } from '../view.ts'
import { describeEntry } from './describe-entry.ts'
import type { Story } from './load-story.ts'

/**
 * Everything that happened, oldest first.
 * @param cursor of this page; undefined for the first
 */
export function Timeline({ story, cursor }: { story: Story; cursor: string | undefined }) {
  const { timeline, found } = story
  const { currency } = found.transaction
  const path = storyPath(found.transaction)
  return (
    <Card
      id="timeline"
      title={t('story.sections.timeline')}
      note={t('story.sections.timelineNote')}
    >
      {cursor === undefined ? null : (
        <p>
          <a href={`${path}#timeline`}>{t('story.sections.firstEntries')}</a>
        </p>
      )}
      <ol class="timeline">
        {timeline.data.map((entry, at) => (
          <li>
            <Entry words={describeEntry(entry, currency)} at={entry.at} id={`entry-${at}`} />
          </li>
        ))}
      </ol>
      {timeline.nextCursor === null ? null : (
        <p>
          <a href={`${path}?cursor=${encodeURIComponent(timeline.nextCursor)}#timeline`}>
            {t('story.sections.laterEntries')}
          </a>
        </p>
      )}
    </Card>
  )
}

function Entry(props: { words: ReturnType<typeof describeEntry>; at: string; id: string }) {
  const { words, at, id } = props
  return (
    <>
      <span class="soft">
        <Time iso={at} />
      </span>
      <div>
        <strong>{t(`timeline.actors.${words.actor}`)}</strong>: {words.title}
      </div>
      {words.details.length === 0 ? null : <div class="soft">{words.details.join(' · ')}</div>}
      {words.received ? (
        <details id={id}>
          <summary>{t('timeline.received')}</summary>
          <pre>{words.received}</pre>
        </details>
      ) : null}
    </>
  )
}
