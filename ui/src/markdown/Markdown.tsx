import { memo, useMemo } from 'react';
import ReactMarkdown, { defaultUrlTransform, type Components } from 'react-markdown';
import rehypeSanitize, { defaultSchema } from 'rehype-sanitize';
import remarkGfm from 'remark-gfm';
import { isArtifact } from '@/api/useBlobUrl';
import { ArtifactImage } from './ArtifactImage';
import { chunksOf } from './chunks';
import { FencedCode } from './CodeBlock';
import { isTooComplex } from './complexity';
import styles from './Markdown.module.css';
import { PlainOnError, PlainText } from './PlainText';

const SCHEMA = { ...defaultSchema, protocols: { ...defaultSchema.protocols, src: ['data'] } };
const PLUGINS = [remarkGfm];
const SANITIZE = [[rehypeSanitize, SCHEMA]] as [[typeof rehypeSanitize, typeof SCHEMA]];

const COMPONENTS: Components = {
  a: ({ href, children }) => <a href={href} target="_blank" rel="noopener noreferrer">{children}</a>,
  pre: ({ node }) => <FencedCode node={node} />,
  // A wide table scrolls by itself; keyboards have to reach it.
  // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
  table: ({ children }) => <div className={styles.table} role="region" aria-label="Table" tabIndex={0}><table>{children}</table></div>,
  img: ({ src, alt }) => <Picture src={typeof src === 'string' ? src : ''} alt={alt ?? ''} />,
};

/** Pictures come from this server or from the text itself; those of other servers would tell them who is reading. */
function Picture({ src, alt }: { src: string; alt: string }) {
  if (isArtifact(src)) return <ArtifactImage uri={src} alt={alt} />;
  if (src.startsWith('data:image/')) return <img src={src} alt={alt} className={styles.image} />;
  return <span className="faint">[{alt || 'image'}: not loaded, because it is on another server]</span>;
}

function urlOf(url: string, key: string): string {
  return key === 'src' && url.startsWith('data:image/') ? url : defaultUrlTransform(url);
}

/** One independent part of a text, parsed again only when it changes. */
const Chunk = memo(function Chunk({ text }: { text: string }) {
  return <ReactMarkdown remarkPlugins={PLUGINS} rehypePlugins={SANITIZE} components={COMPONENTS} urlTransform={urlOf}>{text}</ReactMarkdown>;
});

/** Text from people and models. HTML in it is shown as text, and so is what would take the page too long to format. */
export const Markdown = memo(function Markdown({ text, isStreaming = false }: { text: string; isStreaming?: boolean }) {
  const isPlain = useMemo(() => isTooComplex(text), [text]);
  return (
    <div className={styles.markdown} dir="auto" data-streaming={isStreaming || undefined}>
      {isPlain ? <PlainText text={text} /> : <PlainOnError text={text}>{chunksOf(text).map((chunk, at) => <Chunk key={at} text={chunk} />)}</PlainOnError>}
    </div>
  );
});
